import { join } from 'node:path'
import { openStore } from '../../support/open-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { duplicateCandidates } from '../../../src/mail/archive.ts'
import { type SmsState, twinOf } from '../../../src/sms/archive.ts'
import type { Sql } from '../../../src/store/database.ts'
import { messagesOf } from '../../../src/ops/transfer/mbox.ts'
import { appliance, type Appliance, message } from '../../support/appliance.ts'
import { emailsOf, exported, type Fields, imported, packed } from './moving.ts'

// whole boxes and archives: a busy machine takes its time
const patient = 240_000

const mebibyte = 1024 * 1024
const fromLine = 'From a@b.test Fri Nov 20 10:00:00 2020\n'

async function* repeated(words: string, mebibytes: number, first = ''): AsyncGenerator<Buffer> {
  if (first !== '') yield Buffer.from(first)
  const piece = Buffer.from(words.repeat(Math.ceil(mebibyte / words.length)))
  for (let count = 0; count < mebibytes; count += 1) yield piece
}

async function identity(box: Appliance, input: object = {}): Promise<Fields> {
  return (await box.call('POST', '/v1/identities', input)).body
}

async function usage(box: Appliance): Promise<number> {
  return (await box.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes
}

async function storage(box: Appliance, id: string): Promise<Fields> {
  return (await box.call('GET', `/v1/identities/${id}`)).body['storage']
}

const lines = (values: object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('')

/** A text message as an export lists it. */
function text(number: number, more: object = {}): object {
  return {
    direction: 'inbound',
    status: 'received',
    from: '+15550100199',
    to: '+15550100123',
    body: `Text ${number}`,
    read: true,
    provider: 'loopback',
    segments: 1,
    error: null,
    media: [],
    codes: [],
    received_at: new Date(Date.UTC(2020, 0, 1) + number * 1000).toISOString(),
    sent_at: null,
    delivered_at: null,
    ...more,
  }
}

test.each([
  ['line_too_long', 'line 2 of messages.jsonl is longer than 4194304 bytes', () => repeated('x', 5, '{}\n')],
  ['too_deep', 'Line 2 of messages.jsonl is nested deeper than 32 levels', () => repeated('[', 1, '{}\n')],
  ['too_many_tokens', 'Line 2 of messages.jsonl has more than 100000 tokens', () => repeated('{},', 1, '{}\n[')],
])(
  'a line of an archive that costs too much to read ends its import: %s',
  async (code, words, list) => {
    const box = await appliance()
    const { id } = await identity(box)
    for (const name of ['messages.jsonl', 'sms.jsonl']) {
      const archive = await packed({ [name]: list() })
      expect(archive.length).toBeLessThan(64 * 1024)
      const told = await imported(box, id, archive)
      expect(told).toMatchObject({ status: 'failed', error: { code } })
      expect(told.error!.message.toLowerCase()).toContain(words.replace('messages.jsonl', name).toLowerCase())
    }
  },
  patient,
)

test(
  'a line as long as lines may be is read, in however many pieces it comes',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const long = JSON.stringify({ file: 'a.eml', padding: 'x'.repeat(4 * mebibyte - 100) })
    const archive = await packed({ 'a.eml': message({ Subject: 'Here' }, 'Words.'), 'messages.jsonl': `${long}\n{}\n${long}` })
    expect((await imported(box, id, archive)).result).toMatchObject({ imported: 1, duplicates: 1, ignored: 0, unreadable: 1 })
  },
  patient,
)

const heap = (): number => process.memoryUsage().heapUsed

test('a message of an mbox takes memory for its octets, and none for its lines', async () => {
  const before = heap()
  let most = 0
  async function* watched(): AsyncGenerator<Buffer> {
    for await (const chunk of repeated('a\n', 16, fromLine)) {
      yield chunk
      most = Math.max(most, heap() - before)
    }
  }
  const found = []
  for await (const { bytes: octets } of messagesOf(watched(), 32 * mebibyte)) found.push(octets?.length)
  expect(found).toEqual([3 * 8 * mebibyte])
  expect(most).toBeLessThan(256 * mebibyte)
})

test(
  'an mbox of 16 million lines in a small archive is a message like any other, and the box goes on',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const archive = await packed({ 'old.mbox': repeated('a\n', 32, `${fromLine}Subject: Lines\n\n`) })
    expect(archive.length).toBeLessThan(64 * 1024)
    const before = heap()
    let most = 0
    const watch = setInterval(() => (most = Math.max(most, heap() - before)), 20)
    onTestFinished(() => clearInterval(watch))
    expect(await imported(box, id, archive)).toMatchObject({ status: 'done', result: { imported: 1 } })
    expect(most).toBeLessThan(512 * mebibyte)
    expect((await emailsOf(box, id)).map(({ subject }) => subject as string)).toEqual(['Lines'])
    expect((await imported(box, id, message({ Subject: 'After' }, 'Words.'))).result).toMatchObject({ imported: 1 })
  },
  patient,
)

test(
  'an archive of more than 300,000 messages is import_too_large, however small it is',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const archive = await packed({ 'messages.jsonl': repeated('{"file":null,"mbox_index":null}\n', 10) })
    const told = await imported(box, id, archive)
    expect(told).toMatchObject({ status: 'failed', error: { code: 'import_too_large' } })
    expect(told.error!.message).toContain('more than 300000 messages')
  },
  patient,
)

test(
  'text messages that are imported count with their texts, and no longer once they are purged',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const body = 'ü'.repeat(10_000)
    const picture = Buffer.alloc(5000, 1)
    const list = [
      ...Array.from({ length: 20 }, (_, number) => text(number, { body: `${number} ${body}` })),
      text(20, { codes: ['4'.repeat(64)], error: { code: '1', message: 'm'.repeat(500) } }),
      text(21, { media: [{ content_type: `image/${'x'.repeat(100)}`, status: 'kept' }], media_files: ['media/a'] }),
    ]
    const archive = await packed({ 'sms.jsonl': lines(list), 'media/a': picture })
    expect((await imported(box, id, archive)).result).toMatchObject({ sms: 22, unreadable: 0 })
    const least = 20 * 20_000 + 64 + 500 + 100 + picture.length
    const { media } = await storage(box, id)
    expect(media).toBeGreaterThan(least)
    expect(media).toBeLessThan(least + 22 * 1024)
    expect(await usage(box)).toBe(media)
    expect((await imported(box, id, archive)).result).toMatchObject({ sms: 0, duplicates: 22 })
    expect(await usage(box)).toBe(media)
    const { body: all } = await box.call('GET', `/v1/identities/${id}/sms?limit=200`)
    const [newest] = all.data
    await box.call('DELETE', `/v1/identities/${id}/sms/${newest.id}`)
    expect(await usage(box)).toBe(media)
    expect((await storage(box, id))['trash']).toBeGreaterThan(picture.length)
    for (const { id: sms } of all.data) await box.call('DELETE', `/v1/identities/${id}/sms/${sms}?purge=true`)
    expect([await usage(box), await storage(box, id)]).toMatchObject([0, { media: 0, trash: 0 }])
  },
  patient,
)

test(
  'what an account may keep holds for the texts of an archive',
  async () => {
    const box = await appliance({ PILLARBOX_LIMITS__STORAGE_BYTES: '100 KiB' })
    const { id } = await identity(box)
    const list = Array.from({ length: 100 }, (_, number) => text(number, { body: `${number} ${'x'.repeat(10_000)}` }))
    const told = await imported(box, id, await packed({ 'sms.jsonl': lines(list) }))
    expect(told).toMatchObject({ status: 'failed', error: { code: 'mailbox_full' } })
    const kept = (await box.call('GET', `/v1/identities/${id}/sms?limit=200`)).body.data.length
    expect(kept).toBe(9)
    expect(told.error!.message).toContain('and 9 text messages were imported')
    expect(await usage(box)).toBeLessThanOrEqual(100 * 1024)
  },
  patient,
)

const delivery = {
  recipient: 'v@victim.test',
  status: 'delivered',
  smtp_code: 250,
  enhanced_code: '2.0.0',
  response: 'r'.repeat(1000),
  mx: null,
  tls: null,
  attempts: 1,
  next_attempt_at: null,
  delivered_at: null,
}

test.each([
  ['to', { to: 'a@b.test, '.repeat(9000) }, 90_000],
  [
    'bcc',
    { direction: 'outbound', bcc: Array.from({ length: 100 }, (_, n) => ({ address: `a${n}@b.test`, name: 'n'.repeat(900) })) },
    90_000,
  ],
  ['deliveries', { direction: 'outbound', deliveries: Array.from({ length: 90 }, () => delivery) }, 90_000],
  ['labels', { labels: Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(64, 'x')) }, 6000],
])(
  '%s that an archive says of a message counts with it, and no longer once it is purged',
  async (_, told, least) => {
    const box = await appliance()
    const { id } = await identity(box)
    const raw = message({ Subject: 'Small' }, 'Words.')
    const archive = await packed({ 'a.eml': raw, 'messages.jsonl': lines([{ file: 'a.eml', ...told }]) })
    expect((await imported(box, id, archive)).result).toMatchObject({ imported: 1, not_understood: 0 })
    const used = await usage(box)
    expect(used).toBeGreaterThan(least)
    expect((await storage(box, id))['used']).toBe(used)
    const [kept] = await emailsOf(box, id)
    expect(kept!['size']).toBe(Buffer.byteLength(raw))
    await box.call('DELETE', `/v1/identities/${id}/emails/${kept!['id']}`)
    expect(await storage(box, id)).toMatchObject({ used, trash: used })
    await box.call('DELETE', `/v1/identities/${id}/emails/${kept!['id']}?purge=true`)
    expect([await usage(box), await storage(box, id)]).toMatchObject([0, { used: 0, trash: 0 }])
    const small = await appliance({ PILLARBOX_LIMITS__STORAGE_BYTES: String(least) })
    const { id: there } = await identity(small)
    expect(await imported(small, there, archive)).toMatchObject({ status: 'failed', error: { code: 'mailbox_full' } })
    expect(await usage(small)).toBe(0)
  },
  patient,
)

test(
  'a message of few octets counts for the row that it takes',
  async () => {
    const box = await appliance()
    const { id } = await identity(box)
    const archive = await packed({ 'old.mbox': Array.from({ length: 100 }, (_, n) => `${fromLine}A: ${n}\n\n`).join('') })
    expect((await imported(box, id, archive)).result).toMatchObject({ imported: 100 })
    expect(await usage(box)).toBeGreaterThanOrEqual(100 * 1024)
  },
  patient,
)

/** Finds what an e-mail of an archive may be. */
const mail = (message_id: string | null) =>
  duplicateCandidates('ident_x', {
    raw: Buffer.from('x'),
    state: {},
    examined: { sha256: '00', parsed: { message_id } },
  } as never)

test('whether a message is there already is found by an index, among a bounded number, however many there are', async () => {
  const box = await appliance()
  await box.app.stop()
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'))
  onTestFinished(() => database.close())
  const plan = ({ sql: query }: Sql): string =>
    database
      .prepare(`EXPLAIN QUERY PLAN ${query}`)
      .all()
      .map(({ detail }) => String(detail))
      .join('\n')
  for (const [query, index] of [
    [twinOf('ident_x', text(1) as SmsState), 'sms_by_time (identity_id=? AND received_at=?)'],
    [mail('<a@b.test>'), 'emails_by_message_id (identity_id=? AND message_id=?)'],
    [mail(null), 'emails_unnamed (identity_id=? AND size=?)'],
  ] as const) {
    expect(plan(query)).toContain(`USING INDEX ${index}`)
    expect(plan(query)).not.toMatch(/SCAN (?:sms|emails|blobs)\b/)
    expect(query.sql).toContain('LIMIT')
  }
})

test('what an mbox would change is in a file of its own, and everything comes back octet by octet', async () => {
  const [box, other] = [await appliance(), await appliance()]
  const [{ id }, { id: there }] = [await identity(box), await identity(other)]
  const head = 'Subject: Ends\r\n\r\n'
  const bodies = [
    'From me to you\r\n>From you\r\n>>From us\r\nFromage\r\n>Fro\r\n',
    'a lone CR\rFrom here\r\n',
    'a lone LF\nFrom here\r\n',
    'two CR\r\r\n',
    'no end',
    'an empty end\r\n\r\n\r\n',
    '',
  ]
  const mails = bodies.map((body, number) => `Message-ID: <${number}@sender.test>\r\n${head}${body}`)
  expect(
    (await imported(box, id, await packed(Object.fromEntries(mails.map((raw, n) => [`${n}.eml`, raw]))))).result,
  ).toMatchObject({ imported: mails.length })
  const { octets } = await exported(box, id)
  expect((await imported(other, there, octets)).result).toMatchObject({ imported: mails.length, unreadable: 0, ignored: 0 })
  const raws = await Promise.all(
    (await emailsOf(other, there)).map(
      async (email) => (await other.call<string>('GET', `/v1/identities/${there}/emails/${email['id']}/raw`)).body,
    ),
  )
  expect(raws.toSorted()).toEqual(mails.toSorted())
})
