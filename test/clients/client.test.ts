import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import {
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  Pillarbox,
  PillarboxError,
  RateLimitedError,
  ServerError,
  TimeoutError,
  UnauthorizedError,
} from '../../clients/typescript/src/index.ts'
import { deliver, message, openAppliance } from '../support/appliance.ts'
import { clientOf } from './support.ts'

const { box, close } = await openAppliance()
afterAll(close)
const client = clientOf(box)

/** A fetch whose first answers are these; an error is what the network says after the box has done its work. */
function faulty(...first: (Response | Error)[]): { fetch: typeof fetch; keys: (string | null)[] } {
  const keys: (string | null)[] = []
  return {
    keys,
    fetch: async (url, init) => {
      keys.push(new Headers(init?.headers).get('Idempotency-Key'))
      const instead = first.shift()
      if (instead instanceof Response) return instead
      const answer = await fetch(url, init)
      if (instead) throw instead
      return answer
    },
  }
}

/** What a call throws. */
async function thrown(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => 'nothing',
    (error: unknown) => error,
  )
}

test('a call is repeated with its own key after a status that passes and after a lost answer, and has one effect', async () => {
  const { fetch, keys } = faulty(new Response('<html>Bad gateway</html>', { status: 502 }), new TypeError('fetch failed'))
  const made = await clientOf(box, { fetch }).identities.create({ name: 'Once' })
  expect(keys).toHaveLength(3)
  expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/)
  expect(new Set(keys).size).toBe(1)
  const { data } = await client.identities.list({ query: 'Once' })
  expect(data.map(({ id }) => id)).toEqual([made.id])
})

test('the same key of the caller’s own gives the same answer', async () => {
  const options = { idempotencyKey: 'order-4711' }
  const first = await client.identities.create({}, options)
  expect(await client.identities.create({}, options)).toEqual(first)
  await expect(client.identities.create({ metadata: { other: true } }, options)).rejects.toMatchObject({
    code: 'idempotency_key_reused',
  })
})

test('a refusal for too many calls is repeated when the box says so, and thrown when that is long', async () => {
  const soon = faulty(new Response('{"error":{}}', { status: 429, headers: { 'Retry-After': '0' } }))
  await clientOf(box, { fetch: soon.fetch }).account.get()
  expect(soon.keys).toHaveLength(2)
  const late = faulty(new Response('{"error":{"message":"m","code":"c"}}', { status: 429, headers: { 'Retry-After': '3600' } }))
  const error = await thrown(clientOf(box, { fetch: late.fetch }).account.get())
  expect(error).toBeInstanceOf(RateLimitedError)
  expect(error).toMatchObject({ code: 'c', status: 429, retry_after: 3600 })
})

test('what may not happen twice is not repeated', async () => {
  const { id } = await client.identities.create()
  const lost = faulty(new TypeError('fetch failed'))
  const bytes = Buffer.from('From: a@b.test\r\nSubject: x\r\n\r\nx\r\n')
  await expect(clientOf(box, { fetch: lost.fetch }).identities.importMessages(id, bytes)).rejects.toBeInstanceOf(ConnectionError)
  expect(lost.keys).toEqual([null])
})

test('what a lost answer deleted counts as deleted, and what was never there does not', async () => {
  const { id } = await client.identities.create()
  const lost = clientOf(box, faulty(new TypeError('fetch failed')))
  expect(await lost.identities.delete(id)).toEqual({ id, deleted: true })
  expect(await thrown(client.identities.delete(id))).toBeInstanceOf(NotFoundError)
  const busy = clientOf(box, faulty(new Response('', { status: 429, headers: { 'Retry-After': '0' } })))
  expect(await thrown(busy.identities.delete(id))).toBeInstanceOf(NotFoundError)
})

test('no more is tried than was said', async () => {
  const answers = Array.from({ length: 9 }, () => new Response('', { status: 503, headers: { 'Retry-After': '0' } }))
  const { fetch, keys } = faulty(...answers)
  const error = await thrown(clientOf(box, { fetch, retries: 1 }).account.get())
  expect(error).toBeInstanceOf(ServerError)
  expect(error).toMatchObject({ code: 'http_503', status: 503 })
  expect(keys).toHaveLength(2)
})

test('errors have a class, a code, the parameter and the id of the request', async () => {
  const { id } = await client.identities.create({ name: 'Errors' })
  const narrow = await client.apiKeys.create({ label: 'narrow', scopes: ['identities:read'] })

  // the example of the API document
  const missing = await thrown(client.emails.send(id, { subject: 'x' } as never))
  expect(missing).toBeInstanceOf(InvalidRequestError)
  expect(missing).toMatchObject({ type: 'invalid_request', param: 'to', status: 400 })
  const cases: [() => Promise<unknown>, typeof PillarboxError, object][] = [
    [() => clientOf({ ...box, key: 'wrong' }).account.get(), UnauthorizedError, { code: 'invalid_key', status: 401 }],
    [() => clientOf({ ...box, key: narrow.key }).account.get(), ForbiddenError, { code: 'insufficient_scope', status: 403 }],
    [() => client.identities.get('ident_01jd3v8m2ef1pbx9mz5k7q4w6a'), NotFoundError, { type: 'not_found', status: 404 }],
    [() => client.identities.create({ name: 'errors' }), ConflictError, { type: 'conflict', param: 'name', status: 409 }],
  ]
  for (const [call, Class, fields] of cases) {
    const error = await thrown(call())
    expect(error).toBeInstanceOf(Class)
    expect(error).toBeInstanceOf(PillarboxError)
    expect(error).toMatchObject({ ...fields, name: Class.name, request_id: expect.stringMatching(/^req_/) })
  }
  const few = await client.apiKeys.create({ label: 'few', rate_limit: 1 })
  const limited = clientOf({ ...box, key: few.key }, { retries: 0 })
  await limited.account.get()
  const error = await thrown(limited.account.get())
  expect(error).toBeInstanceOf(RateLimitedError)
  expect((error as PillarboxError).retry_after).toBeGreaterThan(0)
  expect(JSON.stringify([missing, error])).not.toContain(box.key)
})

test('an id that would name another call is refused before it is sent', async () => {
  const { fetch, keys } = faulty()
  const careful = clientOf(box, { fetch })
  for (const id of ['..', '.', '', undefined as never, { id: 'x' } as never]) {
    await expect(careful.identities.get(id)).rejects.toMatchObject({ code: 'invalid_id', param: 'identity' })
  }
  expect(keys).toEqual([])
  await expect(careful.identities.get('a/../b?x=1')).rejects.toBeInstanceOf(NotFoundError)
})

test('no answer is a TimeoutError, no connection a ConnectionError, and an aborted call throws the reason', async () => {
  const silent = createServer(() => undefined)
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const patient = new Pillarbox({ baseUrl: url, apiKey: 'x', retries: 0, timeout: 0.05 })
  await expect(patient.account.get()).rejects.toBeInstanceOf(TimeoutError)
  await expect(patient.account.get()).rejects.toMatchObject({ code: 'timeout', message: expect.stringContaining(url) })
  const aborter = new AbortController()
  const waiting = patient.account.get({ timeout: 60, signal: aborter.signal })
  aborter.abort(new Error('no longer wanted'))
  await expect(waiting).rejects.toThrow('no longer wanted')
  const nobody = new Pillarbox({ baseUrl: 'http://127.0.0.1:9', apiKey: 'x', retries: 0 })
  await expect(nobody.account.get()).rejects.toMatchObject({ code: 'connection_failed', cause: expect.any(Error) })
  await expect(nobody.account.get()).rejects.toBeInstanceOf(ConnectionError)
})

test('an answer that is not of a box says so', async () => {
  for (const answer of [
    new Response('<html>', { status: 404 }),
    new Response(null, { status: 301, headers: { Location: '/' } }),
    new Response('null', { status: 502 }),
    new Response('{"error":"Bad Gateway"}', { status: 502 }),
    new Response('{"error":{"message":"Bad Gateway","code":502}}', { status: 502 }),
    new Response('{"error":{"code":"bad_gateway"}}', { status: 502 }),
  ]) {
    const { fetch } = faulty(answer)
    await expect(clientOf(box, { fetch, retries: 0 }).account.get()).rejects.toMatchObject({
      code: `http_${answer.status}`,
      status: answer.status,
      message: expect.stringContaining('not from a Pillarbox'),
    })
  }
  for (const baseUrl of ['', 'box.example.com', 'ftp://box.example.com', 'https://box.example.com/?x']) {
    expect(() => new Pillarbox({ baseUrl })).toThrow(PillarboxError)
  }
})

test('the spelling of the API document’s client library is understood', async () => {
  const documented = clientOf({ url: `${box.url}/v1/`, key: box.key })
  const ada = await documented.identities.create({ display_name: 'Ada', metadata: { team: 'research' } })
  expect(ada).toMatchObject({ name: 'Ada', status: 'active' })
  const bob = await documented.identities.create({ display_name: 'Bob' })
  await documented.emails.send(ada.id, { to: bob.email, subject: 'Hello', body: 'Hello Bob.' })
  const { item } = await documented.waitForMessage(bob, { from: ada.email })
  expect(item).toMatchObject({ subject: 'Hello', read: false })
  const { data } = await documented.emails.search(bob.id, { query: 'hello', from: ada.email, after: '2020-01-01' })
  expect(data.map(({ subject }) => subject)).toEqual(['Hello'])
  expect(await documented.emails.update(bob.id, item.id, { read: true })).toMatchObject({ read: true })
  const entry = await documented.totp.create(ada.id, {
    secret: 'JBSWY3DPEHPK3PXP',
    service_name: 'Example',
    algorithm: 'SHA1',
    digits: 6,
    period: 30,
  })
  expect((await documented.totp.code(ada.id, entry.id)).code).toMatch(/^\d{6}$/)
  const phone = await documented.identities.provisionPhone(ada.id, { country: 'US' })
  expect(phone.phone_number).toMatch(/^\+1/)
  expect(await documented.billing.subscription()).toMatchObject({ status: 'active' })
})

test('the code that is waited for is that of the sender who was named, and of a message that has one', async () => {
  const { id, email } = await client.identities.create()
  await deliver(box.smtp, {
    from: 'a@other.test',
    to: email,
    raw: message({ From: 'a@other.test', Subject: 'x' }, 'Your code is 111111.\n'),
  })
  await deliver(box.smtp, { to: email, raw: message({ Subject: 'Welcome' }, 'Good to have you.\n') })
  const waiting = client.waitForCode(id, { from: 'sender@sender.test', timeout: 60 })
  await deliver(box.smtp, { to: email, raw: message({ Subject: 'Sign in' }, 'Your code is 493817.\n') })
  const { code, item, since } = await waiting
  expect(code).toBe('493817')
  expect(item).toMatchObject({ type: 'email', subject: 'Sign in' })
  await deliver(box.smtp, { to: email, raw: message({ Subject: 'Again' }, 'Your code is 222222.\n') })
  expect(await client.waitForCode({ id }, { since: since!, subject: 'again' })).toMatchObject({ code: '222222' })
})

test('a wait without a message ends with a TimeoutError, one with a signal by it', async () => {
  const { id } = await client.identities.create()
  const error = await thrown(client.waitForCode(id, { from: 'nobody@x.test', timeout: 1 }))
  expect(error).toBeInstanceOf(TimeoutError)
  expect(error).toMatchObject({ code: 'no_message', message: 'No message from nobody@x.test arrived within 1 s.' })
  const waiting = client.waitForMessage(id, { signal: AbortSignal.timeout(100) })
  await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' })
})

test('a message is returned also when the answer with it was lost', async () => {
  const { id, email } = await client.identities.create()
  await deliver(box.smtp, { to: email, raw: message({ Subject: 'Before' }, 'x\n') })
  const { fetch, keys } = faulty()
  const losing = clientOf(box, { fetch: (...request) => (keys.length === 1 ? lost(...request) : fetch(...request)) })
  const lost = async (...request: Parameters<typeof globalThis.fetch>): Promise<Response> => {
    await fetch(...request)
    throw new TypeError('fetch failed')
  }
  expect((await losing.waitForMessage(id)).item).toMatchObject({ subject: 'Before' })
  await deliver(box.smtp, { to: email, raw: message({ Subject: 'Lost once' }, 'x\n') })
  expect((await losing.waitForMessage(id)).item).toMatchObject({ subject: 'Lost once' })
})

/** A program whose clock is five minutes ahead, or behind; the answer to its first wait is lost. Prints what it was answered, and its calls. */
const losing = `
const ahead = Number(process.env.AHEAD)
const real = Date.now
Date.now = () => real() + ahead
const { Pillarbox } = await import(process.env.CLIENT)
const calls = []
const client = new Pillarbox({ baseUrl: process.env.URL, apiKey: process.env.KEY, fetch: async (url, init) => {
  calls.push(url.includes('/wait?') ? 'wait' : 'other')
  const answer = await fetch(url, init)
  if (calls.filter((call) => call === 'wait').length === 1 && calls.at(-1) === 'wait') throw new TypeError('fetch failed')
  return answer
} })
if (process.env.EARLIER) await client.identities.get(process.env.ID)
const { item } = await client.waitForMessage(process.env.ID, { timeout: 8 }).catch((error) => ({ item: { subject: error.code } }))
console.log(JSON.stringify([item.subject, ...calls]))
`

test.each([
  ['ahead', 300_000, 'after an earlier call', 'yes'],
  ['ahead', 300_000, 'in its first call', ''],
  ['behind', -300_000, 'after an earlier call', 'yes'],
] as const)('the clock of a program that is %s (%i ms) loses no message with the answer that is lost %s', async (...given) => {
  const [, ahead, , earlier] = given
  const { id, email } = await client.identities.create()
  await deliver(box.smtp, { to: email, raw: message({ Subject: 'Lost once' }, 'x\n') })
  const CLIENT = new URL('../../clients/typescript/src/index.ts', import.meta.url).href
  const env = { AHEAD: String(ahead), CLIENT, URL: box.url, KEY: box.key, ID: id, EARLIER: earlier }
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', losing], { env })
  // the time of the box is known from any answer, and asked for when there was none
  expect(JSON.parse(stdout)).toEqual(['Lost once', ...(earlier ? ['other', 'wait'] : ['wait', 'other']), 'wait'])
})
