import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { routeOf } from '../../src/http/route.ts'
import { errorOf, openToybox, type Toybox, toyRoutes } from './toy-box.ts'

const route = routeOf('Toys')

let box: Toybox

/** Answers how long the text was. */
const taking = route('POST', '/large', {
  scope: 'identities:write',
  summary: 'Take a large body',
  limit: 40 * 1024 * 1024,
  body: z.strictObject({ text: z.string() }),
  reply: z.object({ length: z.int() }),
  handle: async ({ body }) => ({ length: body.text.length }),
})

beforeAll(async () => {
  const played = { made: 0, aborted: [], release: undefined, held: Promise.resolve() }
  box = await openToybox({}, { routes: [...toyRoutes(played), taking] })
})

afterAll(async () => {
  await box.server.stop()
})

const make = async (body: string) => await box.call('POST', '/v1/toys', { key: 'free', body })

/** A metadata field nested so deep that the body as a whole has so many levels. */
const deep = (levels: number): string => `{"name":"a","metadata":${'{"a":'.repeat(levels - 1)}1${'}'.repeat(levels - 1)}}`

/** A body of so many tokens: braces and brackets that open, commas and colons. */
const many = (tokens: number): string => {
  const empty = '{"name":"a","metadata":{"x":[]}}'
  const before = empty.match(/[{[,:]/g)!.length
  return empty.replace('[]', `[1${',1'.repeat(tokens - before)}]`)
}

/** What is answered to a call of which only this much is sent, though more was announced. */
async function answerTo(path: string, announced: number, sent: string, key?: string): Promise<string> {
  const socket = connect(box.port, '127.0.0.1')
  await once(socket, 'connect')
  const authorization = key === undefined ? '' : `Authorization: Bearer ${key}\r\n`
  const heads = `Host: x\r\n${authorization}Content-Type: application/json\r\nContent-Length: ${announced}`
  socket.write(`POST ${path} HTTP/1.1\r\n${heads}\r\n\r\n${sent}`)
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  await once(socket, 'close')
  return answer
}

/** A body with so much white space outside of strings. */
const spaced = (spaces: number): string => `{"name":"a",${' '.repeat(spaces)}"metadata":{"text":"${' '.repeat(10_000)}"}}`

test('a body nested deeper than 32 levels is too_deep, and one of 32 is taken', async () => {
  expect((await make(deep(32))).status).toBe(201)
  const error = await errorOf(await make(deep(33)))
  expect(error).toMatchObject({ type: 'invalid_request', status: 400, code: 'too_deep' })
  expect(error.message).toBe('The body is nested deeper than 32 levels. Flatten it, or send the inner part as a string.')
})

test('a body of more than 10,000 tokens is too_many_tokens, and one of 10,000 is taken', async () => {
  expect((await make(many(10_000))).status).toBe(201)
  const error = await errorOf(await make(many(10_001)))
  expect(error).toMatchObject({ type: 'invalid_request', status: 400, code: 'too_many_tokens' })
  expect(error.message).toContain('more than 10000 tokens')
})

const keyed = (key: string): string => `{"name":"a","metadata":{"x":[1,{}],"${key}":"${'long value '.repeat(500)}"}}`

test('a key of more than 1,024 octets is too_long_key, while it arrives, and one of 1,024 is taken', async () => {
  expect((await make(keyed('k'.repeat(1024)))).status).toBe(201)
  for (const key of ['k'.repeat(1025), 'é'.repeat(513), String.raw`\u0041`.repeat(171)]) {
    const error = await errorOf(await make(keyed(key)))
    expect(error).toMatchObject({ type: 'invalid_request', status: 400, code: 'too_long_key' })
    expect(error.message).toBe('The body has a key of more than 1024 bytes, not counting quotes. Send long text as a value.')
  }
  expect(await answerTo('/v1/large', 40_000_000, `{"${'k'.repeat(100_000)}`, 'free')).toContain('"code":"too_long_key"')
})

test('a key that is wrong, or names what is wrong, is repeated no further than 128 characters', async () => {
  const key = 'é'.repeat(500)
  const cut = `${'é'.repeat(127)}…`
  for (const body of [
    { name: 'a', metadata: { [key]: { [key]: 'x'.repeat(10) } }, [key]: 1 },
    { name: 'a', labels: { [key]: 1 } },
  ]) {
    const response = await make(JSON.stringify(body))
    const text = await response.text()
    expect([response.status, text.length < 1500]).toEqual([400, true])
    expect(text).not.toContain('é'.repeat(129))
    if (body.labels === undefined) expect(JSON.parse(text)).toMatchObject({ error: { param: cut } })
  }
})

test('only what stands outside of strings counts, however the string is written and wherever a packet ends', async () => {
  const text = `${'[{,:'.repeat(20_000)}\\"${'\\\\'.repeat(7)}`
  const body = JSON.stringify({ name: 'a', metadata: { text, after: [1, 2, { x: text }] } })
  expect((await make(body)).status).toBe(201)
  // every packet ends at another place of the escapes
  const octets = Buffer.from(body)
  for (const size of [1021, 1022, 1023, 1024]) {
    const pieces = Array.from({ length: Math.ceil(octets.length / size) }, (_, n) => octets.subarray(n * size, (n + 1) * size))
    const response = await fetch(`${box.base}/v1/toys`, {
      method: 'POST',
      headers: { Authorization: 'Bearer free', 'Content-Type': 'application/json' },
      body: ReadableStream.from(pieces),
      duplex: 'half',
    })
    expect(response.status).toBe(201)
    expect(((await response.json()) as { metadata: unknown }).metadata).toEqual({ text, after: [1, 2, { x: text }] })
  }
})

test('it is refused while it arrives: the rest is neither waited for nor read', async () => {
  const nested = await answerTo('/v1/toys', 1_000_000, '['.repeat(1000), 'free')
  expect(nested).toContain('HTTP/1.1 400 ')
  expect(nested).toContain('"code":"too_deep"')
  const wide = await answerTo('/v1/toys', 1_000_000, `{"name":[${'{},'.repeat(20_000)}`, 'free')
  expect(wide).toContain('"code":"too_many_tokens"')
})

test('a number without end and white space without end are too_much_padding, while they arrive', async () => {
  for (const filler of ['1', ' ', '\n\t'] as const) {
    const sent = `{"name":"a","metadata":{"a":1${filler.repeat(900_000 / filler.length)}`
    const more = filler.repeat(200_000 / filler.length)
    expect(await answerTo('/v1/large', 2_000_000, sent + more, 'free')).toContain('"code":"too_much_padding"')
  }
  expect((await make(spaced(990_000))).status).toBe(201)
  const error = await errorOf(await make(spaced(1_000_001)))
  expect(error).toMatchObject({ type: 'invalid_request', status: 400, code: 'too_much_padding' })
  expect(error.message).toBe(
    'The body has more than 1000000 bytes outside of strings, in white space and digits. Send it without indentation.',
  )
})

const sendText = async (text: string) => await box.call('POST', '/v1/large', { key: 'free', body: `{"text":"${text}"}` })

test('strings of nothing but escapes are too_many_escapes, and those of a text are not', async () => {
  // ten mebibytes of text, as programs write it that keep to ASCII
  const pair = String.raw`\ud83d\ude00`
  for (const [text, length] of [
    [pair.repeat(2_621_440), 5_242_880],
    [`${'words '.repeat(12)}\\n`.repeat(143_640), 73 * 143_640],
    [String.raw`\"`.repeat(6_291_456), 6_291_456],
  ] as const) {
    const taken = await sendText(text)
    expect([taken.status, await taken.json()]).toEqual([200, { length }])
  }
  for (const escape of [String.raw`\"`, String.raw`\\`, String.raw`\n`, `${'x'.repeat(3)}\\t`]) {
    const error = await errorOf(await sendText(escape.repeat(6_291_457)))
    expect(error).toMatchObject({ type: 'invalid_request', status: 400, code: 'too_many_escapes' })
    expect(error.message).toBe(
      String.raw`The body has more than 6291456 escapes (\n, \u20ac and the like) in its strings. Send less at a time, in plain UTF-8.`,
    )
  }
  const begun = `{"text":"${String.raw`\\`.repeat(7_000_000)}`
  expect(await answerTo('/v1/large', 40_000_000, begun, 'free')).toContain('"code":"too_many_escapes"')
})

test('a call that needs no key takes 64 KiB, and more is refused by what it announces', async () => {
  const large = await answerTo('/v1/open', 64 * 1024 + 1, '')
  expect(large).toContain('HTTP/1.1 400 ')
  expect(large).toContain('"code":"body_too_large"')
  expect(large).toContain('The body is larger than 65536 bytes, the limit of this call.')
  const padded = `{}${' '.repeat(64 * 1024 - 2)}`
  expect((await box.call('POST', '/v1/open', { key: null, body: padded })).status).toBe(200)
  expect(await errorOf(await box.call('POST', '/v1/open', { key: null, body: `${padded} ` }))).toMatchObject({
    code: 'body_too_large',
  })
})

test('who may not call is refused before the body is looked at', async () => {
  for (const [key, code] of [
    [undefined, '401'],
    ['none', '403'],
  ] as const) {
    expect(await answerTo('/v1/toys', 1_000_000, '', key)).toContain(`HTTP/1.1 ${code} `)
  }
})

const words = (mebibytes: number): string => JSON.stringify({ text: 'x'.repeat(mebibytes * 1024 * 1024) })

test('bodies share the memory: an account that has its part waits, others are read, and what was answered makes room', async () => {
  const roomy = await openToybox({}, { routes: [taking] })
  onTestFinished(() => roomy.server.stop())
  const [body, part] = [words(23), words(20)]
  const send = async (key: string) => await roomy.call('POST', '/v1/large', { key, body })
  // all but the last octet: it is in memory, and goes on
  const begin = async (): Promise<Socket> => {
    const socket = connect(roomy.port, '127.0.0.1').on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    const heads = `Host: x\r\nAuthorization: Bearer all\r\nContent-Type: application/json\r\nContent-Length: ${part.length}`
    socket.write(`POST /v1/large HTTP/1.1\r\n${heads}\r\n\r\n`)
    await new Promise((resolve) => socket.write(part.slice(0, -1), resolve))
    return socket
  }
  const [first, second] = await Promise.all([begin(), begin()])
  const refused = await send('second')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await errorOf(refused)).toMatchObject({ type: 'rate_limited', code: 'too_much_at_once' })
  expect((await send('other')).status).toBe(200)
  const answered = once(first, 'data')
  first.write('}')
  expect(String((await answered)[0])).toContain('HTTP/1.1 200 OK')
  expect((await send('second')).status).toBe(200)
  second.destroy()
  // the connection that was cut gives its part back too
  await expect
    .poll(async () => (await Promise.all([send('second'), send('second')])).map(({ status }) => status))
    .toEqual([200, 200])
})

test('answers that are not read count: an account that leaves much of them is refused, others are not', async () => {
  const long = route('GET', '/long', {
    scope: 'identities:read',
    summary: 'Get a long text',
    reply: z.object({ text: z.string() }),
    handle: async () => ({ text: 'x'.repeat(16 * 1024 * 1024) }),
  })
  const busy = await openToybox({}, { routes: [long] })
  onTestFinished(() => busy.server.stop())
  const ask = async (): Promise<Socket> => {
    const socket = connect(busy.port, '127.0.0.1').on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    socket.write('GET /v1/long HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\n\r\n')
    await once(socket, 'readable')
    return socket
  }
  const unread = [await ask(), await ask(), await ask(), await ask()]
  const refused = await busy.call('GET', '/v1/long', { key: 'second' })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await errorOf(refused)).toMatchObject({ type: 'rate_limited', code: 'too_much_unread' })
  const other = await busy.call('GET', '/v1/long', { key: 'other' })
  expect([other.status, (await other.text()).length]).toEqual([200, 16 * 1024 * 1024 + 11])
  for (const socket of unread) socket.resume()
  await expect.poll(async () => (await busy.call('HEAD', '/v1/long', { key: 'second' })).status).toBe(200)
})

test('of strangers from many networks who leave much unread together, those who have left most are hung up on; who reads is answered', async () => {
  const long = route('GET', '/long', {
    scope: 'public',
    summary: 'Get a long text',
    reply: z.object({ text: z.string() }),
    handle: async () => ({ text: 'x'.repeat(16 * 1024 * 1024) }),
  })
  const busy = await openToybox({ trusted_proxies: ['127.0.0.1'] }, { routes: [long] })
  onTestFinished(() => busy.server.stop())
  const asked: Socket[] = []
  for (let network = 1; network <= 12; network += 1) {
    const socket = connect(busy.port, '127.0.0.1').on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    socket.write(`GET /v1/long HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.${network}.1\r\n\r\n`)
    await once(socket, 'readable')
    asked.push(socket)
  }
  const reader = await busy.call('GET', '/v1/long', { headers: { 'X-Forwarded-For': '203.0.200.1' } })
  expect([reader.status, (await reader.text()).length]).toEqual([200, 16 * 1024 * 1024 + 11])
  const lengths = await Promise.all(asked.map(lengthOf))
  // six such answers fit into 112 MiB, and one of them was for who read it
  expect(lengths.filter((length) => length > 16 * 1024 * 1024).length).toBe(5)
})

/** Octets that come until the end of the answer or of the connection. */
async function lengthOf(socket: Socket): Promise<number> {
  let length = 0
  for await (const piece of socket) {
    length += (piece as Buffer).length
    if (length > 16 * 1024 * 1024) break
  }
  return length
}

test('an answer whose caller has gone before it was made holds nothing', async () => {
  const begun: (() => void)[] = []
  const late = route('GET', '/late', {
    scope: 'identities:read',
    summary: 'Get a long text late',
    reply: z.object({ text: z.string() }),
    handle: async () => {
      if (begun.length === 4) return { text: '' }
      await new Promise<void>((resolve) => begun.push(resolve))
      return { text: 'x'.repeat(16 * 1024 * 1024) }
    },
  })
  const busy = await openToybox({}, { routes: [late] })
  onTestFinished(() => busy.server.stop())
  for (let turn = 1; turn <= 4; turn += 1) {
    const socket = connect(busy.port, '127.0.0.1').on('error', () => undefined)
    socket.write('GET /v1/late HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\n\r\n')
    await expect.poll(() => begun.length).toBe(turn)
    socket.destroy()
  }
  // by then it is known that they have gone
  expect((await busy.call('GET', '/v1/late')).status).toBe(200)
  for (const finish of begun) finish()
  expect((await busy.call('GET', '/v1/late')).status).toBe(200)
})

test.each([
  ['sent at once', false],
  ['woken at once', true],
])('of calls %s, each answer counts before the next is made', async (_, woken) => {
  const { promise, resolve: wake } = Promise.withResolvers<void>()
  const text = 'x'.repeat(16 * 1024 * 1024)
  let asleep = 0
  const long = route('GET', '/long', {
    scope: 'identities:read',
    summary: 'Get a long text',
    reply: z.object({ text: z.string() }),
    ...(woken && { shared: true, effect: true }),
    handle: async ({ turn }) => {
      if (!woken) return { text }
      asleep += 1
      await promise
      await turn()
      return { text }
    },
  })
  const busy = await openToybox({}, { routes: [long] })
  onTestFinished(() => busy.server.stop())
  const sockets = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const socket = connect(busy.port, '127.0.0.1').on('error', () => undefined)
      onTestFinished(() => void socket.destroy())
      await once(socket, 'connect')
      return socket
    }),
  )
  for (const socket of sockets) socket.write('GET /v1/long HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\n\r\n')
  if (woken) await expect.poll(() => asleep).toBe(8)
  wake()
  await Promise.all(sockets.map((socket) => once(socket, 'readable')))
  const statuses = sockets.map((socket) => String(socket.read()).slice(9, 12))
  expect(statuses.toSorted()).toEqual(['200', '200', '200', '429', '429', '429', '429', '429'])
})
