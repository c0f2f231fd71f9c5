import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32, deflateRawSync } from 'node:zlib'
import { type Packable, zip } from '../../src/core/zip/zip.ts'
import { type Attacker, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

/** Files that are small as they come. What an import was refused with, or how its job ended, is what the attacker hears. */
const attacks: Attack[] = [
  {
    name: 'an archive whose list is one line of 16 MiB',
    scopes: ['emails:write'],
    run: async (attacker) => importing(attacker, await packed({ 'messages.jsonl': Buffer.alloc(16 * 1024 * 1024 - 1, '[') })),
    answers: ['400 line_too_long', '400 import_too_large', 'failed', 'done'],
  },
  {
    name: 'an archive whose list is 200 MB of one line',
    scopes: ['emails:write'],
    run: async (attacker) =>
      importing(attacker, await packed({ 'sms.jsonl': repeated(Buffer.alloc(1024 * 1024, '{"a":['), 200) })),
    answers: ['400 line_too_long', '400 import_too_large', 'failed', 'done'],
  },
  {
    name: 'an mbox of 21 million short lines in 41 KB',
    scopes: ['emails:write'],
    run: async (attacker) => {
      const from = Buffer.from('From a@b.test Fri Nov 20 10:00:00 2020\nSubject: Lines\n\n')
      const lines = repeated(Buffer.alloc(1_000_000, 'a\n'), 42)
      return importing(attacker, await packed({ 'lines.mbox': join(from, lines) }))
    },
    answers: ['400 import_too_large', 'failed', 'done', 'cancelled'],
  },
  {
    name: 'an mbox of two million empty messages',
    scopes: ['emails:write'],
    run: async (attacker) => {
      const message = Buffer.from('From a@b.test Fri Nov 20 10:00:00 2020\n\n\n')
      const messages = repeated(Buffer.concat(Array.from({ length: 10_000 }, () => message)), 200)
      return importing(attacker, await packed({ 'messages.mbox': messages }))
    },
    answers: ['400 import_too_large', 'failed', 'done', 'cancelled'],
  },
  {
    name: '100 MB of text messages that differ in their ends alone, in 239 KB',
    scopes: ['messages:write'],
    run: async (attacker) => importing(attacker, await packed({ 'sms.jsonl': textMessages(5000) })),
    answers: ['400 import_too_large', 'failed', 'done', 'cancelled'],
  },
  {
    name: 'an archive that unpacks to 100 times its size, again and again',
    scopes: ['emails:write'],
    run: async (attacker) => {
      const bomb = await packed({
        'bomb.mbox': repeated(Buffer.alloc(1024 * 1024), 64),
        'bomb.eml': repeated(Buffer.alloc(1024 * 1024), 64),
      })
      for (let times = 0; times < 3; times += 1) await importing(attacker, bomb)
    },
    answers: ['400 import_too_large', '409 job_running', '429 rate_limited', 'failed', 'done', 'cancelled'],
  },
  {
    name: 'a message of 60 million line ends in 60 KB',
    scopes: ['emails:write'],
    run: async (attacker) => {
      const lines = repeated(Buffer.alloc(1_000_000, '\n'), 60)
      return importing(attacker, await packed({ 'lines.eml': join(Buffer.from('Subject: Lines\n'), lines) }))
    },
    answers: ['400 import_too_large', 'failed', 'done', 'cancelled'],
  },
  {
    name: 'a header of 24 MB in 24 KB, and what came of it, over and over',
    scopes: ['emails:write', 'messages:read'],
    run: async (attacker) => {
      const start = Buffer.from('Message-ID: <long@attacker.test>\r\nAuthentication-Results: x\r\n')
      await importing(attacker, await packed({ 'long.eml': join(start, repeated(Buffer.alloc(1_000_000, 'a:\r\n'), 24)) }))
      const { data } = (await attacker.own('GET', '/emails', { quiet: true })).body
      if (data?.[0]) await attacker.repeat(4, () => attacker.own('GET', `/emails/${data[0].id}/raw`, { quiet: true }))
    },
    answers: ['400 import_too_large', 'failed', 'done', 'cancelled'],
  },
  {
    name: 'an archive that lists one file 60,000 times',
    scopes: ['emails:write'],
    run: (attacker) => importing(attacker, overlapping(60_000, mailWith('Subject: Once', 'Words. '.repeat(10_000)))),
    answers: ['400 import_too_large', 'failed', 'done', 'cancelled'],
  },
  {
    name: 'thirty imports at once',
    scopes: ['emails:write'],
    run: async (attacker) => {
      const letters = Array.from(
        { length: 500 },
        (_, number) => [`${number}.eml`, mailWith(`Subject: ${number}`, 'Words.')] as const,
      )
      const octets = await packed(Object.fromEntries(letters))
      await attacker.repeat(30, () => importing(attacker, octets))
    },
    answers: ['400 import_too_large', '409 job_running', '429 rate_limited', 'failed', 'done', 'cancelled'],
  },
]

underAttack(attacks)

/** Imports a file; notes the refusal, or how the job ended. One that is still at work when the attack has been going on for long enough is cancelled. */
async function importing(attacker: Attacker, octets: Buffer): Promise<void> {
  const headers = { 'Content-Type': 'application/octet-stream' }
  const { status, body } = await attacker.own('POST', '/import', { body: octets, headers, quiet: true })
  if (status !== 201) return attacker.note(status === 0 ? 'closed' : `${status} ${body.error.code}`)
  const path = `/v1/jobs/${body.id}`
  for (let looks = 0; looks < 20; looks += 1) {
    const job = await attacker.call('GET', path, { quiet: true })
    if (job.status === 200 && job.body.status !== 'running') return attacker.note(job.body.status)
    await sleep(100)
  }
  await attacker.call('POST', `${path}/cancel`, { quiet: true })
  attacker.note('cancelled')
}

async function packed(files: Record<string, Packable['content']>): Promise<Buffer> {
  async function* each(): AsyncGenerator<Packable> {
    for (const [name, content] of Object.entries(files)) yield { name, modified: 0, content }
  }
  return buffer(zip(each()))
}

async function* repeated(piece: Buffer, times: number): AsyncGenerator<Buffer> {
  for (let count = 0; count < times; count += 1) yield piece
}

async function* join(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* rest
}

/** A line of a list for each, long and alike but for its end. */
async function* textMessages(count: number): AsyncGenerator<Buffer> {
  for (let number = 0; number < count; number += 1) yield Buffer.from(`${textMessage('x'.repeat(19_990), number)}\n`)
}

function textMessage(text: string, number: number): string {
  const at = '2026-11-20T10:00:00.000Z'
  const media: never[] = []
  return JSON.stringify({
    direction: 'inbound',
    status: 'received',
    from: '+15005550006',
    to: '+15005550001',
    body: `${text}${number}`,
    read: false,
    provider: 'loopback',
    segments: 1,
    error: null,
    media,
    codes: media,
    received_at: at,
    sent_at: null,
    delivered_at: null,
  })
}

/** A ZIP whose directory names the same file so many times (APPNOTE 6.3.10, 4.3.7 and 4.3.12), each under a name of its own. */
function overlapping(times: number, content: Buffer): Buffer {
  const deflated = deflateRawSync(content)
  const sizes = Buffer.alloc(12)
  sizes.writeUInt32LE(crc32(content), 0)
  sizes.writeUInt32LE(deflated.length, 4)
  sizes.writeUInt32LE(content.length, 8)
  const local = Buffer.alloc(30)
  local.writeUInt32LE(0x04034b50, 0)
  local.writeUInt16LE(20, 4)
  local.writeUInt16LE(8, 8)
  sizes.copy(local, 14)
  local.writeUInt16LE(8, 26)
  const names = Array.from({ length: times }, (_, number) => Buffer.from(`${String(number % 10_000).padStart(4, '0')}.eml`))
  const directory = names.map((name) => {
    const record = Buffer.alloc(46)
    record.writeUInt32LE(0x02014b50, 0)
    record.writeUInt16LE(20, 4)
    record.writeUInt16LE(20, 6)
    record.writeUInt16LE(8, 10)
    sizes.copy(record, 16)
    record.writeUInt16LE(name.length, 28)
    return Buffer.concat([record, name])
  })
  const head = Buffer.concat([local, names[0]!, deflated])
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(times, 8)
  end.writeUInt16LE(times, 10)
  end.writeUInt32LE(list.length, 12)
  end.writeUInt32LE(head.length, 16)
  return Buffer.concat([head, list, end])
}
