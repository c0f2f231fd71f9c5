import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'

test('a part of a name, address or number finds identities, whatever its case; wildcards are letters like others', async () => {
  const box = await appliance()
  for (const name of ['Ada Lovelace', 'Grace', 'Zoë 100%', 'Ada_B'])
    expect((await box.call('POST', '/v1/identities', { name })).status).toBe(201)
  const { body: caller } = await box.call('POST', '/v1/identities', { name: 'Caller', provision_phone: true })
  const found = async (query: string, more = ''): Promise<string[]> => {
    const { body } = await box.call('GET', `/v1/identities?query=${encodeURIComponent(query)}${more}`)
    return body.data.map(({ name }) => name as string)
  }
  expect(await found('ada')).toEqual(['Ada_B', 'Ada Lovelace'])
  expect(await found('LOVE')).toEqual(['Ada Lovelace'])
  expect(await found('ZOË')).toEqual(['Zoë 100%'])
  expect(await found('%')).toEqual(['Zoë 100%'])
  expect(await found('_')).toEqual(['Ada_B'])
  expect(await found('grace@pillarbox')).toEqual(['Grace'])
  expect(await found(String(caller['phone_number']).slice(0, 6))).toEqual(['Caller'])
  // who has no number has null in lists
  const { body } = await box.call('GET', '/v1/identities?limit=100')
  expect(new Set(body.data.map(({ phone_number }) => phone_number as unknown))).toEqual(new Set([caller['phone_number'], null]))
  expect(await found('nobody')).toEqual([])
  // pages of one search are of that search
  const first = await box.call('GET', '/v1/identities?query=ada&limit=1')
  expect(first.body).toMatchObject({ has_more: true, data: [{ name: 'Ada_B' }] })
  const cursor = String(first.body['next_cursor'])
  expect((await box.call('GET', `/v1/identities?query=ada&limit=1&cursor=${cursor}`)).body.data).toMatchObject([
    { name: 'Ada Lovelace' },
  ])
  expect((await box.call('GET', `/v1/identities?query=grace&cursor=${cursor}`)).status).toBe(400)
  expect((await box.call('GET', '/v1/identities?query=')).body.error['param']).toBe('query')
})
