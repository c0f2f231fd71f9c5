import { expect, test } from 'vitest'
import type { Evaluation, Report } from '../../src/trust/model.ts'
import { appliance } from '../support/appliance.ts'
import { anotherAccount } from './accounts.ts'

test('what an account says of an address of its own counts for nothing, whoever of it says so and whenever', async () => {
  const box = await appliance()
  const other = await anotherAccount(box)
  const make = async (name: string): Promise<{ id: string; email: string }> =>
    (await box.call<{ id: string; email: string }>('POST', '/v1/identities', { name })).body
  const [ada, sibling] = [await make('Ada'), await make('Sibling')]
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
  const praise = async (about: string, key?: string): Promise<Report> => {
    const options = key === undefined ? {} : { key }
    const input = { type: 'positive', about, weight: 5 }
    return (await box.call<Report>('POST', `/v1/identities/${ada.id}/events`, input, options)).body
  }
  const judged = async (email: string): Promise<number> =>
    (await other<Evaluation>('POST', '/v1/trust/evaluate', { email })).body.score

  // a key that is bound to one identity does not see the other, which is of its account all the same
  expect(await praise(sibling.email, bound.key as string)).toMatchObject({ weight: 0, counted_weight: 0 })
  expect(await judged(sibling.email)).toBe(0.5)

  // praised before there was anybody of this address
  expect(await praise('later@pillarbox.test')).toMatchObject({ weight: 5, counted_weight: 5 })
  expect(await judged('later@pillarbox.test')).toBe(0.526)
  expect((await make('Later')).email).toBe('later@pillarbox.test')
  expect(await judged('later@pillarbox.test')).toBe(0.5)

  // and after it was deleted
  await box.call('DELETE', `/v1/identities/${sibling.id}`)
  expect(await praise(sibling.email)).toMatchObject({ weight: 0, counted_weight: 0 })
  expect(await judged(sibling.email)).toBe(0.5)
})

test('a DID that is none is nobody’s', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const about of [
    'did:',
    'did:web',
    'did:web:',
    'did:web:a b',
    'did:web:a.test#key',
    'did:web:a.test/x',
    'did:WEB:a.test',
  ]) {
    const { status, body } = await box.call('POST', `/v1/identities/${ada.id}/events`, { type: 'negative', about })
    expect([about, status, body]).toMatchObject([about, 400, { error: { param: 'about' } }])
  }
})
