import { afterAll, beforeAll, expect, test } from 'vitest'
import { routePaths } from '../../src/http/route.ts'
import { errorOf, openToybox, type Toybox, toyId, toyRoutes } from './toy-box.ts'

let box: Toybox

beforeAll(async () => {
  box = await openToybox({ public_rate_limit: 100_000 })
})

afterAll(async () => {
  await box.server.stop()
})

const played = { made: 0, aborted: [], release: undefined, held: Promise.resolve() }
const guarded = routePaths(toyRoutes(played)).filter(({ route }) => route.scope !== 'public')

test.each(guarded.map((spelling) => [`${spelling.method} ${spelling.path}`, spelling] as const))(
  '%s answers 401 without a key and 403 without its scope, before the body is looked at',
  async (_, { method, path }) => {
    const real = path.replaceAll(/:\w+/g, toyId)
    const body = method === 'GET' ? {} : { body: '{not json' }
    const without = await box.call(method, real, { key: null, ...body })
    expect(without.status).toBe(401)
    expect(without.headers.get('www-authenticate')).toContain('Bearer')
    expect(await errorOf(without)).toMatchObject({ type: 'unauthorized', code: 'missing_key' })
    const garbage = await box.call(method, real, { key: 'garbage', ...body })
    expect(await errorOf(garbage)).toMatchObject({ type: 'unauthorized', code: 'invalid_key' })
    const scopeless = await box.call(method, real, { key: 'none', ...body })
    expect(await errorOf(scopeless)).toMatchObject({ type: 'forbidden', status: 403, code: 'insufficient_scope' })
  },
)

test('an unknown path and a wrong method are both 404', async () => {
  for (const [method, path] of [
    ['GET', '/v1/nothing'],
    ['GET', '/'],
    ['PATCH', '/v1/toys'],
    ['PUT', '/v1/toys'],
    ['OPTIONS', '/v1/toys'],
    ['GET', '/v1/toys/'],
    ['GET', '/V1/toys'],
  ] as const) {
    const response = await box.call(method, path)
    expect(await errorOf(response)).toMatchObject({ type: 'not_found', status: 404, code: 'unknown_path' })
  }
})

test('HEAD answers as GET does, without the body', async () => {
  const head = await box.call('HEAD', `/v1/toys/${toyId}`)
  const get = await box.call('GET', `/v1/toys/${toyId}`)
  expect(head.status).toBe(200)
  expect(head.headers.get('content-length')).toBe(String((await get.text()).length))
  expect(await head.text()).toBe('')
})

test('an alias is the same call, and a literal path wins over a parameter', async () => {
  expect((await box.call('POST', '/v1/toys/make', { body: { name: 'Bear' } })).status).toBe(201)
  expect(await (await box.call('GET', '/v1/toys/search?query=bear')).json()).toEqual({ found: 'bear' })
})

test('a 201 names what was made in Location', async () => {
  const response = await box.call('POST', '/v1/toys', { body: { name: 'Bear' } })
  const made = (await response.json()) as { id: string }
  expect(response.status).toBe(201)
  expect(response.headers.get('location')).toBe(`/v1/toys/${made.id}`)
})

test('a field the reply schema does not name never leaves', async () => {
  const text = await (await box.call('GET', '/v1/toys?limit=2')).text()
  expect(text).not.toContain('encrypted_data')
  expect(JSON.parse(text)).toMatchObject({ data: [{ name: 'toy 0' }, { name: 'toy 1' }], has_more: true, next_cursor: 'abc' })
})

test('every answer carries its own request id, whatever the caller sent', async () => {
  const one = await box.call('GET', '/v1/toys', { headers: { 'X-Request-Id': 'mine' } })
  const other = await box.call('GET', '/v1/toys')
  expect(one.headers.get('x-request-id')).toMatch(/^req_[0-9a-z]{26}$/)
  expect(one.headers.get('x-request-id')).not.toBe(other.headers.get('x-request-id'))
})

test('answers are not cached, not sniffed, not framed, and say nothing of the software', async () => {
  const { headers } = await box.call('GET', '/v1/toys')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(headers.get('x-powered-by')).toBeNull()
  expect(headers.get('strict-transport-security')).toBeNull()
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
})

test('a bug reads as a fixed text; what it said is in the log, once', async () => {
  const response = await box.call('POST', '/v1/toys', { body: { name: 'broken' } })
  const error = await errorOf(response)
  expect(error).toMatchObject({ type: 'internal_error', status: 500, code: 'internal_error' })
  expect(JSON.stringify(error)).not.toMatch(/SELECT|\/var|at /)
  const lines = box.lines.filter((line) => line.includes(error.request_id))
  expect(lines.filter((line) => line.includes('SELECT secret'))).toHaveLength(1)
})

test('a reply that does not fit its schema is a bug', async () => {
  expect(await errorOf(await box.call('GET', `/v1/toys/${toyId}/wrong`))).toMatchObject({ type: 'internal_error' })
})

test('a fault on our side may say when to try again', async () => {
  const response = await box.call('POST', '/v1/toys', { body: { name: 'full' } })
  expect(response.headers.get('retry-after')).toBe('60')
  expect(await errorOf(response)).toMatchObject({ type: 'internal_error', code: 'storage_full' })
})

test('a handler that takes too long is given up and told so', async () => {
  expect(await errorOf(await box.call('GET', `/v1/toys/${toyId}/slow`))).toMatchObject({
    type: 'internal_error',
    code: 'timeout',
  })
})

test('the log has one line a request: route template, key id, no query, no key', async () => {
  const response = await box.call('GET', '/files/very-secret-token?signature=canary')
  const id = response.headers.get('x-request-id')!
  const [line] = box.lines.filter((entry) => entry.includes(id))
  expect(JSON.parse(line!)).toMatchObject({
    method: 'GET',
    route: '/files/:token',
    status: 200,
    address: '127.0.0.1',
    key_id: null,
  })
  expect(box.lines.join('')).not.toMatch(/canary|very-secret-token|Bearer/)
})
