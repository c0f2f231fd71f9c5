import { describe, expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'

describe('metadata', () => {
  // RFC 7396 appendix A, where both sides are objects, and what lies near
  const table: [before: object, patch: object, after: object][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: 1 }, { a: 1 }, { e: 1, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    [{ a: [1] }, { a: { b: 1 } }, { a: { b: 1 } }],
    [{ a: 'b' }, {}, { a: 'b' }],
    [{ a: { b: 1 } }, { a: {} }, { a: { b: 1 } }],
    [{ constructor: 1 }, { toString: 'x', hasOwnProperty: null }, { constructor: 1, toString: 'x' }],
    [{ ' ': 1 }, { 'a.b': 2, ä: '😀' }, { ' ': 1, 'a.b': 2, ä: '😀' }],
  ]

  test('is merged key by key, a null removes, anything else replaces', async () => {
    const box = await appliance()
    for (const [before, patch, after] of table) {
      const { body: made } = await box.call('POST', '/v1/identities', { metadata: before })
      const { body: changed, status } = await box.call('PATCH', `/v1/identities/${made.id}`, { metadata: patch })
      expect([before, patch, status, changed['metadata']]).toEqual([before, patch, 200, after])
      expect((await box.call('GET', `/v1/identities/${made.id}`)).body['metadata']).toEqual(after)
    }
  })

  test('is at most 16 KiB, as made and as merged, and a refusal changes nothing', async () => {
    const box = await appliance()
    const full = { a: 'x'.repeat(16 * 1024 - 8) }
    const { body: made, status } = await box.call('POST', '/v1/identities', { metadata: full })
    expect(status).toBe(201)
    for (const metadata of [{ a: 'x'.repeat(16 * 1024 - 7) }, { a: '€'.repeat(5461) }]) {
      const told = await box.call('POST', '/v1/identities', { metadata })
      expect(told).toMatchObject({ status: 400, body: { error: { param: 'metadata' } } })
    }
    const more = await box.call('PATCH', `/v1/identities/${made.id}`, { name: 'Changed', metadata: { b: 1 } })
    expect(more).toMatchObject({ status: 400, body: { error: { type: 'invalid_request', param: 'metadata' } } })
    expect((await box.call('GET', `/v1/identities/${made.id}`)).body).toEqual(made)
    const { body: replaced } = await box.call('PATCH', `/v1/identities/${made.id}`, { metadata: { a: null, b: 1 } })
    expect(replaced['metadata']).toEqual({ b: 1 })
  })

  test('merged by many at once loses nothing', async () => {
    const box = await appliance()
    const { body: made } = await box.call('POST', '/v1/identities', {})
    const numbers = Array.from({ length: 40 }, (_, index) => index)
    await Promise.all(
      numbers.map((number) => box.call('PATCH', `/v1/identities/${made.id}`, { metadata: { [`n${number}`]: number } })),
    )
    const { body } = await box.call('GET', `/v1/identities/${made.id}`)
    expect(body['metadata']).toEqual(Object.fromEntries(numbers.map((number) => [`n${number}`, number])))
  })
})

test('a suspended identity puts mail off, a deleted one refuses it for ever', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const send = (): Promise<string> => deliver(box.smtp, { to: ada.email, raw: message({}, 'x\n') })
  expect(await send()).toMatch(/^250 /)
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  expect(await send()).toMatch(/^450 4\.2\.1 /)
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'active' })
  expect(await send()).toMatch(/^250 /)
  const deleted = await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'deleted' })
  expect(deleted).toMatchObject({ status: 400, body: { error: { param: 'status' } } })
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect(await send()).toMatch(/^550 5\.1\.1 /)
})

test('a date of birth is a day that has been; left out it makes an adult, and stays', async () => {
  const box = await appliance()
  for (const date_of_birth of ['2999-01-01', '1990-02-30', '1990-1-1', '17-04-1990', '1990-04-17T00:00:00Z', '', 'x', 19900417]) {
    const told = await box.call('POST', '/v1/identities', { date_of_birth })
    expect([date_of_birth, told.status, told.body.error['param']]).toEqual([date_of_birth, 400, 'date_of_birth'])
  }
  const { body: made } = await box.call('POST', '/v1/identities', {})
  const years = (Date.now() - Date.parse(made.date_of_birth)) / (365.25 * 86_400_000)
  expect(years).toBeGreaterThan(20.9)
  expect(years).toBeLessThan(61)
  expect((await box.call('PATCH', `/v1/identities/${made.id}`, {})).body['date_of_birth']).toBe(made.date_of_birth)
})
