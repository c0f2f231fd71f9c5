import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { expect, test } from 'vitest'
import { DkimSigner } from '../../src/outbound/compose/signing.ts'
import { HeldClock } from '../support/held-clock.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { ed25519Key } from '../support/signed-mail.ts'
import { verifiedDomain } from '../support/verified-domain.ts'

const published = ed25519Key()
const privateKey = createPrivateKey(published.pem)

/** Signs a message with this body and header; `used` is told when its hash is there and the key is asked for. */
async function signed(
  body: string | Buffer,
  used: () => void = () => undefined,
  header: string = 'From: ada@box.test\r\n',
): Promise<string> {
  const key = {
    selector: 's',
    algorithm: 'ed25519-sha256' as const,
    get private_key(): KeyObject {
      used()
      return privateKey
    },
  }
  const signer = new DkimSigner({ domains: { signingKeys: async () => [key] }, clock: new HeldClock() })
  return signer.sign('box.test', Buffer.concat([Buffer.from(`${header}\r\n`), Buffer.from(body)]))
}

/** What a receiver finds of the signature. */
async function verdict(message: string): Promise<string> {
  const { results } = await dkimVerify(Buffer.from(message), { resolver: async () => [[published.record]] })
  return results.map(({ status }) => status.result).join(' ')
}

const selectors = (raw: string) => [...raw.matchAll(/\ts=(\w+);/g)].map(([, selector]) => selector)

const hashIn = (field: string) => /\tbh=(.*);/.exec(field)?.[1]

/** RFC 6376 3.4.4, line by line. */
function plainHash(body: string): string {
  const lines = body.split('\r\n').map((line) => line.replaceAll(/[ \t]+/g, ' ').replace(/ $/, ''))
  while (lines.at(-1) === '') lines.pop()
  const text = lines.map((line) => `${line}\r\n`).join('')
  return createHash('sha256').update(text).digest('base64')
}

test.each([
  ['nothing', ''],
  ['an empty line', '\r\n'],
  ['blanks', ' \t '],
  ['empty lines and blanks at the end', 'a \r\n\r\n \t\r\n\r\n'],
  ['no line end', ' a\t\tb '],
])('a body of %s is hashed as the RFC has it', async (_, body) => {
  expect(hashIn(await signed(body))).toBe(plainHash(body))
})

test('so are bodies of anything, in one slice or more', async () => {
  const pieces = [' ', '\t', '  ', '\r\n', ' \r\n', '\r\n\r\n', 'a', 'bc', 'ü', '.', 'x '.repeat(40)]
  let seed = 7
  const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const some = (count: number) => Array.from({ length: next(count) }, () => pieces[next(pieces.length)]).join('')
  const bodies = Array.from({ length: 2000 }, () => some(30))
  // around the end of a slice
  for (let size = 65_500; size < 65_560; size += 1) bodies.push('w '.repeat(size / 2) + some(60) + 'w'.repeat(100))
  for (const body of bodies) expect([body, hashIn(await signed(body))]).toEqual([body, plainHash(body)])
})

test.each([
  ['a second From', 'From: eve@box.test\r\n'],
  ['a second Subject', 'Subject: Urgent\r\n'],
  ['a Cc', 'Cc: eve@far.test\r\n'],
  ['a Reply-To', 'Reply-To: eve@far.test\r\n'],
])('%s that is put in on the way breaks the signature', async (_, field) => {
  const header = 'From: ada@box.test\r\nTo: sam@far.test\r\nSubject: Hello\r\n'
  const sent = `${await signed('Hello\r\n', undefined, header)}${header}\r\nHello\r\n`
  expect(await verdict(sent)).toBe('pass')
  expect(await verdict(`X-Other: x\r\n${sent}`)).toBe('pass')
  expect(await verdict(field + sent)).toBe('fail')
})

const offer = 'List-Unsubscribe: <https://box.test/u/1>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n'

test.each([
  ['another link in place of the one', (text: string) => text.replace('box.test/u/1', 'eve.test/u/1')],
  ['a second link', (text: string) => `List-Unsubscribe: <https://eve.test/>\r\n${text}`],
  ['another action', (text: string) => text.replace('=One-Click', '=Two-Click')],
])('an offer to unsubscribe by one click is covered (RFC 8058 4): %s breaks the signature', async (_, change) => {
  const header = `From: ada@box.test\r\nTo: sam@far.test\r\n${offer}`
  const sent = `${await signed('Hello\r\n', undefined, header)}${header}\r\nHello\r\n`
  expect(await verdict(sent)).toBe('pass')
  expect(await verdict(change(sent))).toBe('fail')
})

test('what a mailing list adds leaves the signature good', async () => {
  const header = 'From: ada@box.test\r\nTo: list@far.test\r\n'
  const sent = `${await signed('Hello\r\n', undefined, header)}${header}\r\nHello\r\n`
  expect(await verdict(`List-Id: <list.far.test>\r\n${offer}${sent}`)).toBe('pass')
})

test('a body of blanks is hashed in time by its length', async () => {
  const body = `${' '.repeat(8 * 1024 * 1024)}x`
  expect(hashIn(await signed(body))).toBe(plainHash(' x'))
})

test.each([
  ['words', 'ab '],
  ['line ends', '\r\n'],
])('others have their turns while a large body of %s is hashed', async (_, piece) => {
  let turns = 0
  let atEnd: number | undefined
  const turn = (): void => {
    turns += 1
    if (atEnd === undefined) setImmediate(turn)
  }
  const body = Buffer.alloc(24 * 1024 * 1024, piece)
  setImmediate(turn)
  await signed(body, () => (atEnd ??= turns))
  expect(atEnd).toBeGreaterThan(0)
})

test('what leaves after the keys were rotated is signed by the new ones, the same in all attempts', async () => {
  const clock = new HeldClock()
  const sink = await MailSink.start({ script: (line) => (line === '<end>' ? '451 4.7.1 Later' : undefined) })
  const { box, ada, until } = await sendingBox(sink.port, {}, { clock })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  const domain = await verifiedDomain(box)
  const { body: sent } = await box.call('POST', `/v1/identities/${ada}/emails`, { to: 'bob@far.test', body_text: 'Hello' })
  await until(sent.id, 'deferred')
  expect((await box.call('POST', `/v1/domains/${domain.id}/dkim/rotate`)).status).toBe(200)
  for (const days of [8, 1]) {
    clock.advance(days * 24 * 3_600_000)
    await box.settled()
  }
  const [before = '', ...after] = sink.rejected
  expect(after.length).toBeGreaterThan(1)
  expect(selectors(before)).toHaveLength(2)
  expect(selectors(after[0]!)).toHaveLength(2)
  expect(selectors(after[0]!).filter((selector) => selectors(before).includes(selector))).toEqual([])
  expect(new Set(after).size).toBe(1)
  const records = new Map(domain.dns_records.map(({ name, value }) => [name, value]))
  const { results } = await dkimVerify(Buffer.from(after[0]!, 'latin1'), {
    resolver: async (name: string) => [[records.get(name) ?? '']],
  })
  expect(results.map(({ status }) => status.result)).toEqual(['pass', 'pass'])
  const { body } = await box.call<string>('GET', `/v1/identities/${ada}/emails/${sent.id}/raw`)
  expect(selectors(body)).toEqual(selectors(after[0]!))
})
