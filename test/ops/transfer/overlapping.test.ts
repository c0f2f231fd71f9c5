import { crc32, deflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { appliance, type Appliance, message } from '../../support/appliance.ts'
import { emailsOf, imported, packed } from './moving.ts'

/** A file of a ZIP as its list tells of it: `size` may lie, and `at` names the octets of another. */
interface Listed {
  name: string
  content: Buffer
  size?: number
  at?: number
}

/** A ZIP in which each file that says `at` has no octets of its own, but those of the file of that number. */
function zipOf(files: Listed[]): Buffer {
  const offsets: number[] = []
  const octets: Buffer[] = []
  const list: Buffer[] = []
  const whole = new Map<Buffer, Buffer>()
  let end = 0
  for (const { name, content, size = content.length, at } of files) {
    const deflated = whole.get(content) ?? deflateRawSync(content)
    whole.set(content, deflated)
    const sizes = Buffer.alloc(12)
    sizes.writeUInt32LE(crc32(content), 0)
    sizes.writeUInt32LE(deflated.length, 4)
    sizes.writeUInt32LE(size, 8)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50, 0)
    local.writeUInt16LE(20, 4)
    local.writeUInt16LE(8, 8)
    sizes.copy(local, 14)
    local.writeUInt16LE(name.length, 26)
    const offset = at === undefined ? end : offsets[at]!
    offsets.push(offset)
    if (at === undefined) {
      octets.push(local, Buffer.from(name), deflated)
      end += 30 + name.length + deflated.length
    }
    const record = Buffer.alloc(46)
    record.writeUInt32LE(0x02014b50, 0)
    record.writeUInt16LE(20, 4)
    record.writeUInt16LE(20, 6)
    record.writeUInt16LE(8, 10)
    sizes.copy(record, 16)
    record.writeUInt16LE(name.length, 28)
    record.writeUInt32LE(offset, 42)
    list.push(record, Buffer.from(name))
  }
  const directory = Buffer.concat(list)
  const last = Buffer.alloc(22)
  last.writeUInt32LE(0x06054b50, 0)
  last.writeUInt16LE(files.length, 8)
  last.writeUInt16LE(files.length, 10)
  last.writeUInt32LE(directory.length, 12)
  last.writeUInt32LE(end, 16)
  return Buffer.concat([...octets, directory, last])
}

const small = { PILLARBOX_TRANSFER__UPLOAD_LIMIT: '1 MiB' }

async function identity(box: Appliance): Promise<string> {
  return (await box.call('POST', '/v1/identities', { name: 'Ada' })).body.id
}

const letter = (number: number, words = 'Words.'): Buffer =>
  Buffer.from(message({ Subject: `Letter ${number}`, 'Message-ID': `<l${number}@sender.test>` }, words))

test('an archive whose list names the same octets twice is refused before any of it is kept', async () => {
  const box = await appliance(small)
  const id = await identity(box)
  const [one, two] = [letter(1), letter(2)]
  expect(
    await imported(
      box,
      id,
      zipOf([
        { name: '1.eml', content: one },
        { name: '2.eml', content: two },
        { name: '3.eml', content: one, at: 0 },
      ]),
    ),
  ).toMatchObject({
    status: 'failed',
    error: { code: 'bad_archive', message: expect.stringContaining('overlap') },
  })
  expect(await emailsOf(box, id)).toEqual([])
  const { result } = await imported(
    box,
    id,
    zipOf([
      { name: '1.eml', content: one },
      { name: '2.eml', content: two },
    ]),
  )
  expect(result).toMatchObject({ imported: 2 })
})

test('what came out of files that say less than they hold counts towards what an archive may hold', async () => {
  const box = await appliance(small)
  const id = await identity(box)
  // 200 files of 64 KiB, in 200 × 160 octets, that each claim one octet less; 8 MiB may come out
  const content = letter(1, 'x'.repeat(65_000))
  const lying = Array.from({ length: 200 }, (_, number) => ({ name: `${number}.eml`, content, size: content.length - 1 }))
  expect(await imported(box, id, zipOf(lying))).toMatchObject({ status: 'failed', error: { code: 'import_too_large' } })
  expect((await imported(box, id, zipOf(lying.slice(0, 100)))).result).toMatchObject({ imported: 0, unreadable: 100 })
})

test('a file that is empty costs something each time it is named', async () => {
  const box = await appliance(small)
  const id = await identity(box)
  const text = { direction: 'inbound', from: '+15550100199', to: '+15550100123', body: 'x', received_at: '2020-01-01T00:00:00Z' }
  const list = `${JSON.stringify({ ...text, media_files: Array.from({ length: 100 }, () => 'a') })}\n`.repeat(400)
  expect(await imported(box, id, await packed({ 'sms.jsonl': list, a: '' }))).toMatchObject({
    status: 'failed',
    error: { code: 'import_too_large' },
  })
})
