import { expect, test } from 'vitest'
import { createLog } from '../../../src/core/log.ts'
import { Buckets } from '../../../src/http/rate.ts'
import { RateExchange } from '../../../src/http/rate-exchange.ts'
import { sql } from '../../../src/store/database.ts'
import type { PostgresDatabase } from '../../../src/store/postgres/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import type { Appliance } from '../../support/appliance.ts'
import { card } from '../../support/card.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { severalBoxes } from './boxes.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()

interface Box {
  database: PostgresDatabase
  keys: Buckets
  exchange: () => Promise<void>
  /** Makes so many calls with a key that may make 60 a minute; returns how many are admitted. */
  call: (count: number, key?: string) => number
}

async function box(target: PostgresTarget, clock: HeldClock): Promise<Box> {
  const { database } = await opened(target, { shared: true, heartbeat })
  const keys = new Buckets('key', clock)
  const rates = new RateExchange({ database, clock, log: createLog('silent'), policies: [new Buckets('account', clock), keys] })
  const admitted = (key: string): boolean => keys.take(key, 60)!.retryAfter === 0
  const call: Box['call'] = (count, key = 'key_1') => Array.from({ length: count }, () => admitted(key)).filter(Boolean).length
  return { database, keys, exchange: () => rates.exchange(), call }
}

async function twoBoxes(name: string): Promise<{ clock: HeldClock; target: PostgresTarget; one: Box; other: Box }> {
  const target = await emptyDatabase(postgres(), name)
  await preparePostgres(target, false)
  const clock = new HeldClock()
  const [one, other] = [await box(target, clock), await box(target, clock)]
  for (const each of [one, other]) await each.exchange()
  return { clock, target, one, other }
}

test('what a key uses at one box is missing at the other, once each', async () => {
  const { clock, one, other } = await twoBoxes('rates_each')
  expect(one.call(40)).toBe(40)
  for (const each of [one, other, one, other]) await each.exchange()
  expect(other.call(30)).toBe(20)
  expect(other.call(5, 'key_2')).toBe(5)
  for (const each of [other, one]) await each.exchange()
  expect(one.call(5)).toBe(0)
  // it fills as with one box: one a second
  clock.advance(10_000)
  expect(one.call(30)).toBe(10)
  for (const each of [one, other]) await each.exchange()
  expect(other.call(5)).toBe(0)
})

test('what both admit before they know of each other is owed, so that over minutes there are no more than the limit', async () => {
  const { clock, one, other } = await twoBoxes('rates_owed')
  let admitted = 0
  for (let minutes = 0; minutes < 10; minutes += 1) {
    for (let seconds = 0; seconds < 60; seconds += 1) {
      admitted += one.call(5) + other.call(5)
      if (seconds % 5 === 0) await Promise.all([one.exchange(), other.exchange()])
      clock.advance(1000)
    }
  }
  // the burst that one box would admit, and sixty a minute; both admit their own while they wait for the other
  expect(admitted).toBeLessThan(60 * 12)
  expect(admitted).toBeGreaterThan(60 * 8)
})

test('a box that is opened later does not count what the others had used before, and uses that count no more are removed', async () => {
  const { clock, target, one, other } = await twoBoxes('rates_late')
  expect(one.call(50)).toBe(50)
  await one.exchange()
  const late = await box(target, clock)
  await late.exchange()
  expect(late.call(20)).toBe(20)
  await one.exchange()
  await late.exchange()
  clock.advance(130_000)
  for (let time = 0; time < 60; time += 1) await other.exchange()
  expect(await other.database.all(sql`SELECT * FROM rate_uses`)).toEqual([])
  // what begins anew counts from its beginning
  expect(one.call(30)).toBe(30)
  await one.exchange()
  await other.exchange()
  expect(other.call(60)).toBe(30)
})

test('two boxes have one rate limit for a key', async () => {
  const [one, other] = await severalBoxes(postgres())
  const { body } = await one.call('POST', '/v1/api-keys', { label: 'few', scopes: ['identities:read'], rate_limit: 10 })
  const call = async (at: Appliance): Promise<number> =>
    (await at.call('GET', '/v1/identities', undefined, { key: body.key })).status
  for (let time = 0; time < 10; time += 1) expect(await call(one)).toBe(200)
  await expect.poll(() => call(other), { timeout: 5000 }).toBe(429)
})

test('a budget of a card is spent once, however many boxes are asked at the same time', async () => {
  const boxes = await severalBoxes(postgres())
  const [one] = boxes
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: made } = await one.call('POST', `/v1/identities/${ada.id}/cards`, card({ budget_cents: 1000 }))
  const revealed = await Promise.all(
    Array.from({ length: 40 }, (_, n) => boxes[n % 2]!.call('POST', `/v1/cards/${made.id}/reveal`, { amount_cents: 100 })),
  )
  expect(revealed.filter(({ status }) => status === 200)).toHaveLength(10)
  const refused = revealed.filter(({ status }) => status !== 200)
  expect(new Set(refused.map(({ body }) => body.error['code']))).toEqual(new Set(['budget_exceeded']))
  expect((await one.call('GET', `/v1/cards/${made.id}/limits`)).body).toMatchObject({ spent_cents: 1000, remaining_cents: 0 })
})

test('a limit of a plan is kept, however many boxes are asked at the same time', async () => {
  const boxes = await severalBoxes(postgres(), 2, { PILLARBOX_LIMITS__IDENTITIES: '7' })
  const made = await Promise.all(
    Array.from({ length: 20 }, (_, n) => boxes[n % 2]!.call('POST', '/v1/identities', { name: `Ada ${n}` })),
  )
  expect(made.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([...Array(7).fill(201), ...Array(13).fill(403)])
})
