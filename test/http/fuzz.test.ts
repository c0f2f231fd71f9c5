import {
  anything,
  array,
  assert,
  asyncProperty,
  constantFrom,
  dictionary,
  jsonValue,
  oneof,
  record,
  string,
  stringify,
  webSegment,
} from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openToybox, type Toybox } from './toy-box.ts'

let box: Toybox

beforeAll(async () => {
  box = await openToybox({ public_rate_limit: 0 })
})

afterAll(async () => {
  await box.server.stop()
})

const answered = async (response: Response): Promise<boolean> => {
  const { error } = (await response.json()) as { error?: { status: number; request_id: string } }
  if (response.status < 400) return error === undefined
  return response.status < 500 && error?.status === response.status && error.request_id === response.headers.get('x-request-id')
}

const text = () => string({ unit: 'binary', maxLength: 30 })
const name = () => constantFrom('name', 'colour', 'to', 'budget_cents', 'metadata', 'owner', '__proto__', 'constructor')

test('whatever the body, the answer is the call’s own or a complaint in the one shape', async () => {
  let refused = 0
  await assert(
    asyncProperty(dictionary(oneof(name(), text()), jsonValue({ maxDepth: 3 })), async (body) => {
      const response = await box.call('POST', '/v1/toys', { key: 'free', body: JSON.stringify(body) })
      refused += response.status === 400 ? 1 : 0
      return await answered(response)
    }),
    { numRuns: 300 },
  )
  expect(refused).toBeGreaterThan(0)
})

test('whatever the octets of a body, nothing breaks', async () => {
  let sent = 0
  await assert(
    asyncProperty(string({ unit: constantFrom(...'{}[]",:\\u0019e-. ntf\n\0'.split('')), maxLength: 60 }), async (body) => {
      sent++
      return await answered(await box.call('POST', '/v1/toys', { key: 'free', body }))
    }),
    { numRuns: 300 },
  )
  expect(sent).toBe(300)
})

test('whatever the path, query and headers, nothing breaks', async () => {
  let sent = 0
  const header = string({ unit: constantFrom(...' !"#$%,;=/0aZ~ä'.split('')), maxLength: 20 })
  const call = record({
    path: array(oneof(webSegment(), constantFrom('v1', 'toys', 'search', '..', '%00', '%2e%2e')), { maxLength: 5 }),
    query: dictionary(
      oneof(constantFrom('limit', 'cursor', 'unread', 'offset'), text()),
      oneof(
        text(),
        anything().map((value) => stringify(value)),
      ),
    ),
    headers: record({ 'Idempotency-Key': header, Range: header, Origin: header, 'X-Forwarded-For': header, Cookie: header }),
    method: constantFrom('GET', 'POST', 'PATCH', 'DELETE', 'PUT'),
  })
  await assert(
    asyncProperty(call, async ({ path, query, headers, method }) => {
      sent++
      const search = new URLSearchParams(query).toString()
      const response = await box.call(method, `/v1/${path.join('/')}?${search}`, { key: 'free', headers })
      return await answered(response)
    }),
    { numRuns: 300 },
  )
  expect(sent).toBe(300)
})
