import { gzipSync } from 'node:zlib'
import { assert, dictionary, jsonValue, property, string } from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { JsonScan } from '../../src/core/json.ts'
import { parseJson } from '../../src/http/json.ts'
import { parseInTurns } from '../../src/http/large-json.ts'
import { errorOf, openToybox, type Toybox, toyId } from './toy-box.ts'

let box: Toybox

beforeAll(async () => {
  box = await openToybox()
})

afterAll(async () => {
  await box.server.stop()
})

const make = async (body: unknown, headers: Record<string, string> = {}) =>
  await box.call('POST', '/v1/toys', { key: 'free', body, headers })

describe('a body is refused as malformed_json', () => {
  test.each([
    ['when it ends early', '{"name":'],
    ['when it is no object', '["name"]'],
    ['when it is a text', '"name"'],
    ['when it is null', 'null'],
    ['when a key comes twice', '{"name":"a","name":"b"}'],
    ['when a key comes twice in two spellings', '{"name":"a","\\u006eame":"b"}'],
    ['when a key comes twice deep inside', '{"name":"a","metadata":{"x":[{"y":1,"y":2}]}}'],
    ['when a key is __proto__', '{"name":"a","__proto__":{"colour":"red"}}'],
    ['when a key is __proto__ in escapes', '{"name":"a","metadata":{"\\u005f_proto__":1}}'],
    ['when a number is beyond all bounds', '{"name":"a","metadata":{"x":1e400}}'],
    ['when a number would lose digits', '{"name":"a","metadata":{"x":9007199254740993}}'],
    ['when a number is negative zero', '{"name":"a","metadata":{"x":-0}}'],
    ['when a text holds NUL', '{"name":"a\\u0000b"}'],
    ['when a text holds half a surrogate pair', '{"name":"a\\ud800"}'],
    ['when it is no UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ])('%s', async (_, body) => {
    expect(await errorOf(await make(body))).toMatchObject({ type: 'invalid_request', status: 400, code: 'malformed_json' })
  })
})

test('what is only unusual is taken', async () => {
  const metadata = { 'a"b\\': 'ü😀', list: [1, -1.5, 1e21, true, null, ['x', { y: [] }]], ' ': '', constructor: 'c' }
  const response = await make(JSON.stringify({ name: 'Bär \u{1f43b}', metadata }, null, 2))
  expect(await response.json()).toMatchObject({ name: 'Bär 🐻', metadata })
})

test('every JSON object that JavaScript writes is read back the same', () => {
  let compared = 0
  assert(
    property(dictionary(string({ unit: 'binary' }), jsonValue({ maxDepth: 5 })), (value) => {
      const text = JSON.stringify(value)
      const refused = /\\u0000|__proto__|[[:,]-0|\\ud[89a-f]/.test(text) || /\d{16,}/.test(text) || /[\d.e+-]{33,}/.test(text)
      if (refused) return true
      compared++
      return JSON.stringify(parseJson(Buffer.from(text))) === text
    }),
    { numRuns: 500 },
  )
  expect(compared).toBeGreaterThan(50)
})

test.each([
  ['no body', undefined],
  ['an empty body', ''],
  ['an empty object', '{}'],
])('%s is an empty object, whatever the method', async (_, body) => {
  const headers = { 'Content-Type': 'application/json' }
  for (const [method, path] of [
    ['POST', `/v1/toys/${toyId}/key`],
    ['DELETE', `/v1/toys/${toyId}`],
  ] as const) {
    expect((await box.call(method, path, { body, headers })).status).toBe(200)
  }
  const raw = await box.raw(
    `GET /v1/toys/${toyId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nContent-Type: application/json\r\nContent-Length: ${body?.length ?? 0}\r\nConnection: close\r\n\r\n${body ?? ''}`,
  )
  expect(raw).toContain('HTTP/1.1 200 OK')
})

test.each([
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/vnd.api+json',
  'application/json; charset=utf-7',
  'application/json;;',
  'application/json; charset=utf-8; a=b',
  'application/json charset=utf-8',
  'multipart/form-data; boundary=b',
])('a body of type %s is refused', async (type) => {
  const response = await make('{"name":"a"}', { 'Content-Type': type })
  expect(await errorOf(response)).toMatchObject({ status: 400, code: 'unsupported_media_type' })
})

test('the white space of a type may be as long as a header', async () => {
  const space = ' '.repeat(7000)
  const types = [`application/json${space};${space}charset=utf-8`, `application/json${space};${space}x`]
  const answers = await Promise.all(types.map((type) => make('{"name":"a"}', { 'Content-Type': type })))
  expect(answers.map(({ status }) => status)).toEqual([201, 400])
})

test.each([
  'application/json',
  'application/json;',
  'application/json; charset=utf-8',
  'Application/JSON;charset=UTF-8',
  'application/json ;\tcharset = "utf8" ;',
])('a body of type %s is read', async (type) => {
  expect((await make('{"name":"a"}', { 'Content-Type': type })).status).toBe(201)
})

test('a compressed body is refused before it is unpacked', async () => {
  for (const encoding of ['gzip', 'br', 'deflate', 'x-unheard-of', 'identity, gzip']) {
    const response = await make(new Uint8Array(gzipSync(Buffer.alloc(10_000_000, 32))), { 'Content-Encoding': encoding })
    expect(await errorOf(response)).toMatchObject({ status: 400, code: 'unsupported_encoding' })
  }
  expect((await make('{"name":"a"}', { 'Content-Encoding': 'identity' })).status).toBe(201)
})

test.each([
  ['a key twice', String.raw`{"a":"x\"\\","b":{"\u0061":1,"a":2}}`, 'The field "a" appears twice.'],
  ['__proto__', String.raw`{"a":["\"{,:"],"__prot\u006f__":1}`, 'A field cannot be named __proto__.'],
  ['NUL in a list', String.raw`{"a":[{"b":["x\u0000"]}]}`, String.raw`A string contains the character NUL (\u0000).`],
  ['half a pair', String.raw`{"a":"\ud83d\ud83d\ude00"}`, 'A string contains an unpaired surrogate.'],
  ['half a pair in a key', String.raw`{"\ude00":1}`, 'A string contains an unpaired surrogate.'],
  [
    'a number',
    String.raw`{"ü😀":"ü\"","b":12345678901234567890}`,
    'The number 12345678901234567890 cannot be represented exactly.',
  ],
])('what JSON.parse would pass is found behind strings of any kind: %s', (_what, text, why) => {
  expect(() => parseJson(Buffer.from(text))).toThrow(why)
  // the octets are part of others
  expect(() => parseJson(Buffer.from(`${'x'.repeat(7)}${text}`).subarray(7))).toThrow(why)
})

test('strings with nothing between them are no JSON, however many', () => {
  for (const text of ['""'.repeat(100_000), `{"a":1}${'""'.repeat(100_000)}`]) {
    expect(() => parseJson(Buffer.from(text))).toThrow('The body is not valid JSON.')
    const scan = new JsonScan('It')
    scan.add(Buffer.from(text))
    expect(scan.ends.length).toBeLessThanOrEqual(10_001)
  }
})

test('a body in chunks of an octet each is refused above some thousands of them', async () => {
  const head = `POST /v1/toys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`
  const chunked = (text: string): string => `${head}${text.replaceAll(/./g, '1\r\n$&\r\n')}0\r\n\r\n`
  const refused = await box.raw(chunked(`{"name":"a"${' '.repeat(40_000)}}`))
  expect(refused).toMatch(/^HTTP\/1\.1 400 /)
  expect(refused).toContain('"code":"too_many_chunks"')
  expect(await box.raw(chunked(`{"name":"a"${' '.repeat(600)}}`))).toMatch(/^HTTP\/1\.1 20/)
})

test('of a call that was refused the rest is read up to as many chunks, and no further', async () => {
  expect(await answersTo(600)).toBe(2)
  expect(await answersTo(100_000)).toBe(1)
})

test('a body over the limit is refused, announced or not', async () => {
  const big = JSON.stringify({ name: 'a', metadata: { x: 'x'.repeat(1024 * 1024) } })
  expect(await errorOf(await make(big))).toMatchObject({ status: 400, code: 'body_too_large' })
  const chunks = await fetch(`${box.base}/v1/toys`, {
    method: 'POST',
    headers: { Authorization: 'Bearer free', 'Content-Type': 'application/json' },
    body: new Blob([big]).stream(),
    duplex: 'half',
  })
  expect(await errorOf(chunks)).toMatchObject({ status: 400, code: 'body_too_large' })
})

test('a call without a body of its own takes none of more than 64 KiB', async () => {
  const response = await box.raw(
    `GET /v1/toys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n`,
  )
  expect(response).toContain('body_too_large')
})

describe('a wrong field is named, and what would be right is said', () => {
  test.each([
    [{ nmae: 'a' }, 'nmae', 'Unknown field "nmae". Did you mean "name"?'],
    [{ name: 'a', owner: { emial: 'a@b.test' } }, 'owner.emial', 'Unknown field "emial". Did you mean "email"?'],
    [{}, 'name', 'name is required.'],
    [{ name: 7 }, 'name', 'name must be a string.'],
    [{ name: '' }, 'name', 'name must have at least 1 character.'],
    [{ name: 'x'.repeat(30) }, 'name', 'name must have at most 20 characters.'],
    [{ name: 'a', colour: 'green' }, 'colour', 'colour must be one of red, blue.'],
    [{ name: 'a', to: 7 }, 'to', 'to must be a string, or a list.'],
    [{ name: 'a', to: ['b', 7] }, 'to.1', 'to.1 must be a string.'],
    [{ name: 'a', budget_cents: 1.5 }, 'budget_cents', 'budget_cents must be a whole number.'],
    [{ name: 'a', budget_cents: -1 }, 'budget_cents', 'budget_cents must be at least 0.'],
    [{ name: 'a', owner: { email: 'nobody' } }, 'owner.email', 'owner.email must be an e-mail address.'],
  ])('%j', async (body, param, message) => {
    expect(await errorOf(await make(body))).toMatchObject({ type: 'invalid_request', param, message })
  })

  test('a field far from all others is answered with the list', async () => {
    const error = await errorOf(await make({ name: 'a', account_id: 'acct_1' }))
    expect(error).toMatchObject({ param: 'account_id', code: 'unknown_field' })
    expect(error.message).toContain('name, colour, to')
  })

  test('also on calls that take no body', async () => {
    const response = await box.call('POST', `/v1/toys/${toyId}/key`, { body: { force: true } })
    expect(await errorOf(response)).toMatchObject({ param: 'force', code: 'unknown_field' })
  })
})

describe('a query is as strict as a body', () => {
  test.each([
    ['limt=5', 'limt', 'Unknown parameter "limt". Did you mean "limit"?'],
    ['limit=5&limit=6', 'limit', 'The parameter "limit" appears twice.'],
    ['limit=0', 'limit', 'limit must be a whole number from 1 to 200.'],
    ['limit=', 'limit', 'limit must be a whole number from 1 to 200.'],
    ['limit=1e1', 'limit', 'limit must be a whole number from 1 to 200.'],
    ['unread=yes', 'unread', 'unread must be true or false.'],
    ['cursor=', 'cursor', 'cursor must have at least 1 character.'],
    ['cursor=a%00b', 'cursor', '"cursor" contains the character NUL.'],
    ['__proto__=x', '__proto__', undefined],
  ])('%s', async (query, param, message) => {
    const error = await errorOf(await box.call('GET', `/v1/toys?${query}`))
    expect(error).toMatchObject({ type: 'invalid_request', param, ...(message ? { message } : {}) })
  })
})

const inTurns = (body: Buffer): Promise<Record<string, unknown>> => {
  const scan = new JsonScan('The body')
  scan.add(body)
  return parseInTurns(body, scan)
}

test.each([
  ['an escape', '\\"', '"'],
  ['an escaped backslash', '\\\\', '\\'],
  ['a character by its number', '\\u20ac', '€'],
  ['a surrogate pair by its numbers', '\\ud83d\\ude00', '😀'],
  ['a character of three octets', '€', '€'],
  ['a character of four octets', '😀', '😀'],
  ['a byte order mark', '\ufeff', '\ufeff'],
])('%s in a large body is read wherever a piece ends', async (_, written, meant) => {
  const key = 'k'.repeat(1024)
  for (let shift = 0; shift <= 12; shift += 1) {
    const start = 'a'.repeat(512 * 1024 - shift)
    const body = Buffer.from(`{"${key}":["${start}${written.repeat(100_000)}",1,"short"],"to":"${'b'.repeat(600_000)}"}`)
    const value = await inTurns(body)
    expect(Object.keys(value)).toEqual([key, 'to'])
    expect((value[key] as unknown[]).slice(1)).toEqual([1, 'short'])
    expect((value[key] as string[])[0] === start + meant.repeat(100_000)).toBe(true)
    expect(value['to']).toHaveLength(600_000)
  }
})

const lots = 'a'.repeat(2 * 1024 * 1024)

test.each([
  ['half a surrogate pair', `{"a":"${lots}\\ud83d"}`, 'A string contains an unpaired surrogate.'],
  ['half a pair that no other follows', `{"a":"\\ud83d${lots}"}`, 'A string contains an unpaired surrogate.'],
  ['NUL', `{"a":"${lots}\\u0000${lots}"}`, 'A string contains the character NUL (\\u0000).'],
  ['an escape that is none', `{"a":"${lots}\\x${lots}"}`, 'The body is not valid JSON.'],
  ['a line end in a string', `{"a":"${lots}\n${lots}"}`, 'The body is not valid JSON.'],
  ['a string without end', `{"a":"${lots}`, 'The body is not valid JSON.'],
  ['a field twice', `{"a":"${lots}","a":1}`, 'The field "a" appears twice.'],
  ['a list', `["${lots}"]`, 'The body must be a JSON object.'],
  ['strings side by side', `{"a":"${lots}"${'""'.repeat(20_000)}}`, 'The body is not valid JSON.'],
])('a large body with %s is refused', async (_, body, why) => {
  await expect(inTurns(Buffer.from(body))).rejects.toThrow(why)
})

test('so is one that is no UTF-8', async () => {
  const body = Buffer.from(`{"a":"${lots}"}`)
  body[1024 * 1024] = 0xff
  await expect(inTurns(body)).rejects.toThrow('The body is not valid UTF-8.')
})

test('others have their turn while a large body is parsed', async () => {
  let turns = 0
  const count = (): void => {
    turns += 1
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  const { a } = await inTurns(Buffer.from(`{"a":"${'\\"'.repeat(6 * 1024 * 1024)}${lots}"}`))
  clearImmediate(next)
  expect((a as string).length).toBe(8 * 1024 * 1024)
  expect(turns).toBeGreaterThan(4)
})

/** How many answers 401 a call that is refused hears, with a body in so many chunks and another call behind it. */
async function answersTo(chunks: number): Promise<number> {
  const head = `POST /v1/toys HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
  const next = `GET /v1/toys HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
  const heard = await box.raw(`${head}${'1\r\n \r\n'.repeat(chunks)}0\r\n\r\n${next}`)
  return heard.match(/HTTP\/1\.1 401 /g)?.length ?? 0
}
