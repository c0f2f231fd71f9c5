import { afterAll, describe, expect, test } from 'vitest'
import { openAppliance } from '../support/appliance.ts'
import { blob } from '../support/card.ts'
import { cardsOf, inside, settled, type Settled, stored } from './settled.ts'

const opened = await openAppliance()
const shared: Settled = { box: opened.box, at: await cardsOf(opened.box, 'Shared') }
afterAll(() => opened.close())

describe('states', () => {
  const calls = ['freeze', 'unfreeze', 'cancel', 'reveal', 'limits', 'report'] as const
  const table: Record<string, Record<(typeof calls)[number], [status: number, told: string]>> = {
    active: {
      freeze: [200, 'frozen'],
      unfreeze: [409, 'card_not_frozen'],
      cancel: [200, 'cancelled'],
      reveal: [200, 'active'],
      limits: [200, 'active'],
      report: [201, 'active'],
    },
    frozen: {
      freeze: [200, 'frozen'],
      unfreeze: [200, 'active'],
      cancel: [200, 'cancelled'],
      reveal: [403, 'card_frozen'],
      limits: [200, 'frozen'],
      report: [201, 'frozen'],
    },
    cancelled: {
      freeze: [409, 'card_cancelled'],
      unfreeze: [409, 'card_cancelled'],
      cancel: [409, 'card_cancelled'],
      reveal: [403, 'card_cancelled'],
      limits: [409, 'card_cancelled'],
      report: [409, 'card_cancelled'],
    },
  }
  const cases = Object.entries(table).flatMap(([from, row]) => calls.map((call) => [from, call, ...row[call]] as const))

  test.each(cases)('a card that is %s: %s is answered %d %s', async (from, call, status, told) => {
    const world = shared
    const { box } = world
    const path = await stored(world)
    if (from !== 'active') await box.call('POST', `${path}/${from === 'frozen' ? 'freeze' : 'cancel'}`)
    const { body: before } = await box.call('GET', path)
    expect(before['status']).toBe(from)
    const answer =
      call === 'limits'
        ? await box.call('PATCH', `${path}/limits`, { budget_cents: 5 })
        : call === 'report'
          ? await box.call('POST', `${path}/transactions`, { type: 'report', amount_cents: 1 })
          : await box.call('POST', `${path}/${call}`)
    expect(answer.status).toBe(status)
    const { body: after } = await box.call('GET', path)
    if (status >= 400) {
      expect(answer.body.error.code).toBe(told)
      expect(after).toEqual(before)
    } else expect(after['status']).toBe(told)
    if (status < 300 && ['freeze', 'unfreeze', 'cancel'].includes(call)) expect(answer.body).toEqual(after)
    if (from === 'frozen' && call === 'freeze') expect(after).toEqual(before)
  })

  test('each change is an event, and a freeze that changes nothing is none', async () => {
    const world = await settled()
    const { box, at } = world
    const path = await stored(world)
    for (const call of ['freeze', 'freeze', 'unfreeze', 'reveal', 'cancel']) await box.call('POST', `${path}/${call}`)
    const other = await stored(world)
    await box.call('PATCH', `${other}/limits`, { budget_cents: 7 })
    await box.call('PATCH', `${other}/limits`, { budget_cents: 7 })
    const { body } = await box.call('GET', `${at.replace('/cards', '/events')}?limit=200`)
    expect(body.data.map(({ type }) => type as string).toReversed()).toEqual([
      'identity.created',
      'card.created',
      'card.frozen',
      'card.unfrozen',
      'card.revealed',
      'card.cancelled',
      'card.created',
      'card.limits_updated',
    ])
    expect(body.data[0].data).toEqual((await box.call('GET', other)).body)
    expect(body.data[2].data).toEqual((await box.call('GET', path)).body)
    const { body: narrow } = await box.call('POST', '/v1/api-keys', { label: 'narrow', scopes: ['identities:read'] })
    const { body: less } = await box.call('GET', at.replace('/cards', '/events'), undefined, { key: narrow.key })
    expect(less.data.map(({ type }) => type as string)).toEqual(['identity.created'])
  })
})

test('with its identity every card is cancelled, at once, and gone for every caller', async () => {
  const world = await settled()
  const { box, at } = world
  const paths = [await stored(world), await stored(world), await stored(world)]
  const headers = { 'Idempotency-Key': 'kept' }
  await box.call('POST', `${paths[0]!}/reveal`, {}, { headers })
  await box.call('POST', `${paths[1]!}/freeze`)
  await box.call('POST', `${paths[2]!}/cancel`)
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const kept = await stored({ ...world, at: `/v1/identities/${bob.id}/cards` })
  const { body: made } = await box.call('POST', '/v1/api-keys', { label: 'bound', identity_id: bob.id })
  expect((await box.call('GET', paths[0]!, undefined, { key: made.key })).status).toBe(404)
  await box.call('DELETE', at.replace('/cards', ''))
  for (const path of paths) {
    for (const [method, end] of [
      ['GET', ''],
      ['GET', '/limits'],
      ['GET', '/transactions'],
      ['GET', '/reveal'],
      ['POST', '/reveal'],
      ['POST', '/freeze'],
      ['POST', '/cancel'],
    ] as const) {
      expect((await box.call(method, `${path}${end}`)).status).toBe(404)
    }
  }
  expect((await box.call('POST', `${paths[0]!}/reveal`, {}, { headers })).status).toBe(404)
  expect((await box.call('GET', kept)).body['status']).toBe('active')
  const rows = inside<{ status: string }>(box, 'SELECT status FROM cards ORDER BY seq')
  expect(rows.map(({ status }) => status)).toEqual(['cancelled', 'cancelled', 'cancelled', 'active'])
  // that of the third was free when the last was stored
  const secrets = inside<{ encrypted_data: Uint8Array }>(box, 'SELECT encrypted_data FROM card_secrets ORDER BY slot')
  expect(secrets.map(({ encrypted_data }) => encrypted_data.every((octet) => octet === 0))).toEqual([true, true, false])
  const told = inside<{ type: string }>(
    box,
    `SELECT type FROM events WHERE type IN ('card.cancelled', 'identity.deleted') ORDER BY seq`,
  )
  expect(told.map(({ type }) => type)).toEqual(['card.cancelled', 'card.cancelled', 'card.cancelled', 'identity.deleted'])
})

test('cards that are stored and cancelled again and again leave no secret, and no more room than one takes', async () => {
  const world = await settled()
  for (let times = 0; times < 20; times += 1) {
    const encrypted_data = blob(`{"number":"42424242424242${10 + times}"}`)
    const path = await stored(world, { encrypted_data })
    expect((await world.box.call('POST', `${path}/reveal`, {})).body['encrypted_data']).toBe(encrypted_data)
    await world.box.call('POST', `${path}/cancel`)
  }
  const secrets = inside<{ encrypted_data: Uint8Array }>(world.box, 'SELECT encrypted_data FROM card_secrets')
  expect(secrets.map(({ encrypted_data }) => encrypted_data.every((octet) => octet === 0))).toEqual([true])
})
