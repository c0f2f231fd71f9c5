import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ZipFile } from '../../../src/core/zip/unzip.ts'
import { appliance, type Appliance, message } from '../../support/appliance.ts'
import { movable } from '../../support/held-clock.ts'
import { emailsOf, exported, type Fields, finished, imported, packed, upload } from './moving.ts'

// whole boxes, archives and processes: a busy machine takes its time
const patient = 240_000

function letter(number: number, words = 'Words.'): string {
  return message({ Subject: `Letter ${number}`, 'Message-ID': `<l${number}@sender.test>` }, words)
}

async function* zeros(mebibytes: number): AsyncGenerator<Buffer> {
  const piece = Buffer.alloc(1024 * 1024)
  for (let count = 0; count < mebibytes; count += 1) yield piece
}

/** An mbox of so many messages. */
function mbox(count: number, words?: string): string {
  return Array.from(
    { length: count },
    (_, number) => `From a@b.test Fri Nov 20 10:00:00 2020\r\n${letter(number, words)}\r\n\r\n`,
  ).join('')
}

async function identity(box: Appliance, input: object = {}): Promise<Fields> {
  return (await box.call('POST', '/v1/identities', input)).body
}

const left = (box: Appliance, folder: string): string[] => {
  const path = join(box.env['PILLARBOX_DATA_DIR']!, folder)
  return existsSync(path) ? readdirSync(path) : []
}

test(
  'names in an archive lead nowhere: nothing is written but mail',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const octets = await packed({
      '../../evil.eml': letter(1),
      '/tmp/evil.eml': letter(2),
      'a\0b.eml': letter(3),
      '../../../../evil.txt': 'x',
    })
    expect((await imported(box, id, octets)).result).toMatchObject({ imported: 3, ignored: 1 })
    for (const place of [box.directory, box.env['PILLARBOX_DATA_DIR']!, join(box.directory, '..'), '/', '/tmp']) {
      expect(readdirSync(place).filter((name) => name.startsWith('evil') || name.startsWith('a\0b'))).toEqual([])
    }
    expect(left(box, 'imports')).toEqual([])
    const told = `${JSON.stringify({ file: '../state.json', subject: 'x' })}\n${JSON.stringify({ file: '/etc/passwd' })}\nno json\n`
    expect((await imported(box, id, await packed({ 'messages.jsonl': told }))).result).toMatchObject({
      imported: 0,
      unreadable: 3,
    })
  },
  patient,
)

test(
  'what swells in the unpacking is cut off: one message, and an archive as a whole',
  async () => {
    const box = await appliance({ PILLARBOX_TRANSFER__UPLOAD_LIMIT: '1 MiB' })
    const { id } = await identity(box)
    // within what one message may have, but above 8 MiB in all
    const bomb = await packed({ 'bomb.mbox': zeros(16), 'after.eml': letter(1) })
    expect(bomb.length).toBeLessThan(100_000)
    expect(await imported(box, id, bomb)).toMatchObject({
      status: 'failed',
      error: { code: 'import_too_large', message: expect.stringContaining('exceed 8388608 bytes') },
    })
    const other = await appliance()
    const { id: there } = await identity(other)
    const large = await packed({ 'large.eml': zeros(65), 'after.eml': letter(1) })
    expect((await imported(other, there, large)).result).toMatchObject({ imported: 1, too_large: 1 })
  },
  patient,
)

test(
  'a header of more octets than mail may come with is counted and left out, in whatever file it is',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const long = `Subject: Long\r\n${'a:\r\n'.repeat(64 * 1024)}\r\nWords.\r\n`
    const full = `Subject: Full\r\nX: ${'x'.repeat(256 * 1024 - 20)}\r\n\r\nWords.\r\n`
    const archive = await packed({
      'long.eml': long,
      'full.eml': full,
      'old.mbox': `From a@b.test Fri Nov 20 10:00:00 2020\r\n${long}\r\n${mbox(1)}`,
    })
    const { result } = await imported(box, id, archive)
    expect(result).toMatchObject({ imported: 2, header_too_large: 2, too_large: 0, unreadable: 0 })
    expect((await imported(box, id, long)).result).toMatchObject({ imported: 0, header_too_large: 1 })
    expect((await emailsOf(box, id)).map(({ subject }) => subject as string).toSorted()).toEqual(['Full', 'Letter 0'])
  },
  patient,
)

test(
  'damaged, lying, encrypted and linked entries are counted, and do not stop the others',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const good = await packed({ 'one.eml': letter(1), 'two.eml': letter(2), 'three.eml': letter(3) })
    const at = (name: string): number => good.lastIndexOf(Buffer.from(name)) - 46
    const encrypted = Buffer.from(good)
    encrypted.writeUInt16LE(0x0809, at('one.eml') + 8)
    expect((await imported(box, id, encrypted)).result).toMatchObject({ imported: 2, unreadable: 1 })
    const linked = Buffer.from(good)
    linked.writeUInt32LE((0o120777 * 0x10000) >>> 0, at('two.eml') + 38)
    expect((await imported(box, id, linked)).result).toMatchObject({ imported: 1, duplicates: 1, unreadable: 1 })
    const lying = Buffer.from(good)
    lying.writeUInt32LE(1, at('three.eml') + 16)
    expect((await imported(box, id, lying)).result).toMatchObject({ imported: 0, duplicates: 2, unreadable: 1 })
    for (const cut of [good.length - 30, good.length - 200, 100, 4]) {
      expect(await imported(box, id, good.subarray(0, cut))).toMatchObject({
        status: 'failed',
        error: { message: expect.stringContaining('not a readable ZIP file') },
      })
    }
  },
  patient,
)

test(
  'an archive cannot forge what the box itself says of a message',
  async () => {
    const box = await appliance()
    const { id, email } = await identity(box)
    const state = {
      file: 'a.eml',
      verified_domain: 'bank.test',
      authentication: { dmarc: { result: 'pass' } },
      trace: 'Authentication-Results: pillarbox.test; dmarc=pass\r\n',
      received_at: '2999-01-01T00:00:00Z',
      labels: ['x'],
      direction: 'outbound',
      status: 'queued',
      deliveries: [
        {
          recipient: 'v@victim.test',
          status: 'queued',
          smtp_code: null,
          enhanced_code: null,
          response: null,
          mx: null,
          tls: null,
          attempts: 0,
          next_attempt_at: null,
          delivered_at: null,
        },
      ],
    }
    const forged = `Authentication-Results: pillarbox.test; dmarc=pass\r\n${letter(1)}`
    const wrong = { file: 'b.eml', labels: 'no list', direction: 'sideways' }
    const files = {
      'a.eml': forged,
      'b.eml': letter(2),
      'messages.jsonl': `${JSON.stringify(state)}\n${JSON.stringify(wrong)}\n`,
    }
    expect((await imported(box, id, await packed(files))).result).toMatchObject({ imported: 2, not_understood: 1 })
    const [first] = await emailsOf(box, id)
    expect(first).toMatchObject({
      verified_domain: null,
      authentication: null,
      status: 'cancelled',
      deliveries: [{ status: 'cancelled' }],
    })
    expect(Date.parse(first!['received_at'])).toBeLessThanOrEqual(Date.now())
    const { body: raw } = await box.call<string>('GET', `/v1/identities/${id}/emails/${first!['id']}/raw`)
    expect(raw).not.toContain('dmarc=pass')
    const { body: metrics } = await box.call('GET', `/v1/identities/${id}/emails?direction=outbound`)
    expect(metrics.data).toHaveLength(1)
    expect(email).toContain('@')
  },
  patient,
)

test(
  'an upload has a limit, and a mailbox too; what was kept before stays, and is not kept twice',
  async () => {
    const box = await appliance({ PILLARBOX_TRANSFER__UPLOAD_LIMIT: '1 MiB', PILLARBOX_MAIL__QUOTA: '20 KiB' })
    const { id } = await identity(box)
    const refused = await upload(box, id, Buffer.alloc(1024 * 1024 + 1))
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: 'body_too_large' } }])
    const empty = await upload(box, id, '')
    expect([empty.status, await empty.json()]).toMatchObject([400, { error: { param: 'body' } }])
    const much = mbox(60, 'x'.repeat(900))
    const full = await imported(box, id, much)
    expect(full).toMatchObject({
      status: 'failed',
      error: { code: 'mailbox_full', message: expect.stringContaining('The mailbox is full') },
    })
    const kept = (await emailsOf(box, id)).length
    expect(kept).toBeGreaterThan(10)
    expect(full.error!.message).toContain(`${kept} messages were imported`)
    await imported(box, id, much)
    expect(await emailsOf(box, id)).toHaveLength(kept)
    expect(left(box, 'imports')).toEqual([])
  },
  patient,
)

test(
  'what an account may keep holds for imports, and they are counted',
  async () => {
    const box = await appliance({ PILLARBOX_LIMITS__STORAGE_BYTES: '10 KiB' })
    const { id } = await identity(box)
    const full = await imported(box, id, mbox(40, 'x'.repeat(900)))
    expect(full).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('limits.storage_bytes') } })
    const emails = await emailsOf(box, id)
    expect(emails.length).toBeGreaterThan(4)
    const { body } = await box.call('GET', '/v1/billing/subscription')
    expect(body.usage.storage_bytes).toBe(emails.reduce((sum, one) => sum + Number(one['size']), 0))
  },
  patient,
)

test(
  'an import is cancelled, another begins at once, and nothing is there twice',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const long = mbox(1500)
    const begun = (await (await upload(box, id, long)).json()) as Fields
    const second = await upload(box, id, long)
    expect([second.status, await second.json()]).toMatchObject([409, { error: { code: 'job_running' } }])
    for (;;) {
      const { body } = await box.call('GET', `/v1/jobs/${begun['id']}`)
      if (body.status !== 'running' || body.progress.done > 0) break
      await sleep(5)
    }
    const { body: cancelled } = await box.call('POST', `/v1/jobs/${begun['id']}/cancel`)
    expect(cancelled.status).toBe('cancelled')
    expect(left(box, 'imports')).toEqual([])
    const { result } = await imported(box, id, long)
    expect(result!['imported'] + result!['duplicates']).toBe(1500)
    const { body: threads } = await box.call('GET', `/v1/identities/${id}/threads?limit=200`)
    expect(threads.data).toHaveLength(200)
    const { body: last } = await box.call('GET', `/v1/identities/${id}/emails?limit=1&offset=1499`)
    expect([last.data.length, last.has_more]).toEqual([1, false])
  },
  patient,
)

test(
  'an import that the stop of the box cuts off is failed, and repeated without doubles',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const long = mbox(1000)
    const begun = (await (await upload(box, id, long)).json()) as Fields
    await box.restart()
    const cut = await finished(box, begun['id'])
    expect(cut).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('stopped') } })
    expect(left(box, 'imports')).toEqual([])
    const { result } = await imported(box, id, long)
    expect(result!['imported'] + result!['duplicates']).toBe(1000)
  },
  patient,
)

test(
  'an export is a file for its owner only, its URL opens for a day, and it goes with its job or its identity',
  async () => {
    const clock = movable()
    const box = await appliance({}, clock)
    const { id } = await identity(box)
    const { job, octets } = await exported(box, id)
    expect(octets.length).toBe(job.result!['size'])
    const path = join(box.env['PILLARBOX_DATA_DIR']!, 'exports')
    expect(left(box, 'exports')).toEqual([`${job.id}.zip`])
    expect([statSync(path).mode & 0o777, statSync(join(path, `${job.id}.zip`)).mode & 0o777]).toEqual([0o700, 0o600])
    const url = job.result!['url'] as string
    expect((await fetch(`${url}x`)).status).toBe(403)
    expect((await fetch(url.replace('signature=', 'signature=A'))).status).toBe(403)
    clock.ahead = 23 * 3_600_000
    expect((await fetch(url)).status).toBe(200)
    clock.ahead = 24 * 3_600_000 + 1000
    expect((await fetch(url)).status).toBe(403)
    clock.ahead = 0
    await box.call('DELETE', `/v1/jobs/${job.id}`)
    for (let tries = 0; tries < 100 && left(box, 'exports').length > 0; tries += 1) await sleep(10)
    expect([left(box, 'exports'), (await fetch(url)).status]).toEqual([[], 404])
    const again = await exported(box, id)
    await box.call('DELETE', `/v1/identities/${id}`)
    for (let tries = 0; tries < 100 && left(box, 'exports').length > 0; tries += 1) await sleep(10)
    expect([left(box, 'exports'), (await fetch(again.job.result!['url'])).status]).toEqual([[], 404])
    // old files go at the next start too
    const third = await identity(box)
    await exported(box, third['id'])
    clock.ahead = 24 * 3_600_000 + 5000
    await box.restart()
    expect(left(box, 'exports')).toEqual([])
  },
  patient,
)

test('an identity has three exports at once: of a fourth it is said how to make room', async () => {
  const clock = movable()
  const box = await appliance({}, clock)
  const [{ id }, { id: other }] = [await identity(box), await identity(box)]
  const jobs: string[] = []
  for (let count = 0; count < 3; count += 1) jobs.push((await exported(box, id)).job.id)
  const fourth = () => box.call('POST', `/v1/identities/${id}/export`, {})
  expect(await fourth()).toMatchObject({ status: 409, body: { error: { code: 'too_many_exports' } } })
  expect(left(box, 'exports')).toHaveLength(3)
  await exported(box, other)
  await box.call('DELETE', `/v1/jobs/${jobs[1]}`)
  await exported(box, id)
  expect((await fourth()).status).toBe(409)
  clock.ahead = 24 * 3_600_000 + 1000
  expect((await fourth()).status).toBe(201)
})

test(
  'an export holds what its key may read, is seen by keys that may read all of that, and holds no secret',
  async () => {
    const box = await appliance()
    const { id } = await identity(box, { provision_phone: true })
    const secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
    await box.call('POST', `/v1/identities/${id}/totp`, { secret, service_name: 'Bank' })
    const blob = Buffer.alloc(64, 7).toString('base64')
    const card = {
      encrypted_data: blob,
      last4: '4242',
      brand: 'visa',
      exp_month: 1,
      exp_year: 2090,
      card_name: 'Main',
      budget_cents: 1,
    }
    expect((await box.call('POST', `/v1/identities/${id}/cards`, card)).status).toBe(201)
    const narrow = async (scopes: string[]): Promise<string> =>
      (await box.call('POST', '/v1/api-keys', { label: 'narrow', scopes })).body.key
    const reader = await narrow(['emails:read'])
    const little = await exported(box, id, 'mbox', reader)
    expect(little.job.result!['files']).toEqual([
      'identity.json',
      'messages.mbox',
      'messages.jsonl',
      'events.jsonl',
      'README.txt',
    ])
    const all = await exported(box, id)
    expect(all.job.result!['files']).toEqual(expect.arrayContaining(['sms.jsonl', 'cards.jsonl', 'totp.jsonl', 'threads.jsonl']))
    expect((await box.call('GET', `/v1/jobs/${all.job.id}`, undefined, { key: reader })).status).toBe(404)
    expect((await box.call('GET', `/v1/jobs/${little.job.id}`, undefined, { key: reader })).status).toBe(200)
    const archive = await ZipFile.open(join(box.env['PILLARBOX_DATA_DIR']!, 'exports', `${all.job.id}.zip`))
    for await (const entry of archive.entries()) {
      const text = (await buffer(archive.read(entry, Infinity))).toString()
      expect([entry.name, text.includes(secret), text.includes(blob)]).toEqual([entry.name, false, false])
    }
    await archive.close()
  },
  patient,
)
