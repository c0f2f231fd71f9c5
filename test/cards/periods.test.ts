import { describe, expect, test } from 'vitest'
import { periodEnd } from '../../src/cards/row.ts'
import { settled, stored } from './settled.ts'

const day = 86_400_000

describe('when a period ends', () => {
  test.each([
    ['daily', '2026-11-20T10:05:00.000Z', '2026-11-21T00:00:00.000Z'],
    ['daily', '2026-11-20T23:59:59.999Z', '2026-11-21T00:00:00.000Z'],
    ['daily', '2026-11-21T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
    ['daily', '2028-02-28T12:00:00.000Z', '2028-02-29T00:00:00.000Z'],
    ['daily', '2027-02-28T12:00:00.000Z', '2027-03-01T00:00:00.000Z'],
    ['daily', '2026-12-31T12:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    // 20 November 2026 is a Friday
    ['weekly', '2026-11-20T10:05:00.000Z', '2026-11-23T00:00:00.000Z'],
    ['weekly', '2026-11-22T23:59:59.999Z', '2026-11-23T00:00:00.000Z'],
    ['weekly', '2026-11-23T00:00:00.000Z', '2026-11-30T00:00:00.000Z'],
    ['weekly', '2026-12-31T00:00:00.000Z', '2027-01-04T00:00:00.000Z'],
    ['weekly', '2028-02-28T00:00:00.000Z', '2028-03-06T00:00:00.000Z'],
    ['monthly', '2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00.000Z'],
    ['monthly', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
    ['monthly', '2027-01-31T00:00:00.000Z', '2027-02-01T00:00:00.000Z'],
    ['monthly', '2028-02-29T23:59:59.999Z', '2028-03-01T00:00:00.000Z'],
    ['yearly', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
    ['yearly', '2028-02-29T00:00:00.000Z', '2029-01-01T00:00:00.000Z'],
    ['one_time', '2026-11-20T10:05:00.000Z', null],
  ] as const)('%s, at %s: %s', (period, now, end) => {
    expect(periodEnd(period, Date.parse(now))).toBe(end)
  })

  test('every moment of nine years lies in exactly the period that ends next', () => {
    for (const period of ['daily', 'weekly', 'monthly', 'yearly'] as const) {
      let end = periodEnd(period, Date.UTC(2024, 0, 1))!
      for (let now = Date.UTC(2024, 0, 1); now < Date.UTC(2033, 0, 1); now += day / 4) {
        if (now >= Date.parse(end)) {
          expect(now).toBe(Date.parse(end))
          end = periodEnd(period, now)!
        }
        expect(periodEnd(period, now)).toBe(end)
        expect(periodEnd(period, Date.parse(end) - 1)).toBe(end)
      }
    }
  })
})

describe('over the boundary', () => {
  test.each([
    ['daily', '2028-02-28T10:00:00Z', '2028-02-29T00:00:00Z', '2028-03-01T00:00:00.000Z'],
    ['daily', '2027-02-28T10:00:00Z', '2027-03-01T00:00:00Z', '2027-03-02T00:00:00.000Z'],
    ['weekly', '2026-11-20T10:00:00Z', '2026-11-23T00:00:00Z', '2026-11-30T00:00:00.000Z'],
    ['monthly', '2028-02-10T10:00:00Z', '2028-03-01T00:00:00Z', '2028-04-01T00:00:00.000Z'],
    ['yearly', '2028-06-10T10:00:00Z', '2029-01-01T00:00:00Z', '2030-01-01T00:00:00.000Z'],
  ])('%s from %s: what is spent counts until %s, and not a moment longer', async (period, start, end, next) => {
    const world = await settled(Date.parse(start))
    const { box, clock, at } = world
    const path = await stored(world, { budget_cents: undefined, budget: { amount: 1000, period } })
    const reveal = async (amount_cents: number): Promise<number> =>
      (await box.call('POST', `${path}/reveal`, { amount_cents })).status
    expect(await reveal(1000)).toBe(200)
    clock.advance(Date.parse(end) - 1 - clock.now())
    const resets_at = new Date(end).toISOString()
    expect(await reveal(1)).toBe(403)
    expect((await box.call('GET', `${path}/limits`)).body).toMatchObject({ spent_cents: 1000, resets_at })
    clock.advance(1)
    // read before anything was written in the new period
    expect((await box.call('GET', `${path}/limits`)).body).toMatchObject({
      spent_cents: 0,
      remaining_cents: 1000,
      resets_at: next,
    })
    expect((await box.call('GET', path)).body['spent_cents']).toBe(0)
    expect((await box.call('GET', at)).body.data[0].spent_cents).toBe(0)
    expect(await reveal(1001)).toBe(403)
    expect(await reveal(600)).toBe(200)
    expect(await reveal(401)).toBe(403)
    await box.restart()
    expect((await box.call('GET', `${path}/limits`)).body).toMatchObject({ spent_cents: 600, resets_at: next })
  })

  test('one_time never begins again', async () => {
    const world = await settled()
    const { box, clock } = world
    const path = await stored(world, { budget_cents: 10 })
    expect((await box.call('POST', `${path}/reveal`, { amount_cents: 10 })).status).toBe(200)
    clock.advance(1500 * day)
    expect((await box.call('POST', `${path}/reveal`, { amount_cents: 1 })).body.error.code).toBe('budget_exceeded')
  })

  test('many periods without a word are one', async () => {
    const world = await settled()
    const { box, clock } = world
    const path = await stored(world, { budget_cents: undefined, budget: { amount: 100, period: 'daily' } })
    await box.call('POST', `${path}/reveal`, { amount_cents: 100 })
    clock.advance(40 * day)
    await box.call('POST', `${path}/transactions`, { type: 'report', amount_cents: 30 })
    expect((await box.call('GET', `${path}/limits`)).body).toMatchObject({
      spent_cents: 30,
      resets_at: '2026-12-31T00:00:00.000Z',
    })
  })

  test('a clock put back gives no budget twice', async () => {
    const world = await settled(Date.parse('2026-11-20T23:59:00Z'))
    const { box, clock } = world
    const path = await stored(world, { budget_cents: undefined, budget: { amount: 100, period: 'daily' } })
    const reveal = async (): Promise<number> => (await box.call('POST', `${path}/reveal`, { amount_cents: 100 })).status
    expect(await reveal()).toBe(200)
    clock.advance(120_000)
    expect(await reveal()).toBe(200)
    clock.advance(-120_000)
    expect(await reveal()).toBe(403)
    clock.advance(120_000)
    expect(await reveal()).toBe(403)
  })

  test('a report on a reveal of an earlier period leaves the budget of this one alone', async () => {
    const world = await settled()
    const { box, clock } = world
    const path = await stored(world, { budget_cents: undefined, budget: { amount: 1000, period: 'monthly' } })
    const reveal = async (): Promise<string> =>
      (await box.call('POST', `${path}/reveal`, { amount_cents: 100 })).body['transaction'].id as string
    const [early, late] = [await reveal(), await reveal()]
    clock.advance(12 * day)
    const current = await reveal()
    const spent = async (input: object): Promise<number> =>
      (await box.call('POST', `${path}/transactions`, { type: 'report', ...input })).body['spent_cents'] as number
    expect(await spent({ amount_cents: 700, reveal_id: early })).toBe(100)
    await box.call('PATCH', `${path}/limits`, { reset_spent: true })
    expect(await spent({ amount_cents: 700, reveal_id: current })).toBe(0)
    expect(await spent({ amount_cents: 50 })).toBe(50)
    expect(await spent({ amount_cents: 0, reveal_id: late })).toBe(50)
  })

  test('a change of period keeps what is spent until the new one ends', async () => {
    const world = await settled()
    const { box, clock } = world
    const path = await stored(world, { budget_cents: 1000 })
    await box.call('POST', `${path}/reveal`, { amount_cents: 400 })
    const { body } = await box.call('PATCH', `${path}/limits`, { period: 'weekly' })
    expect(body).toMatchObject({ spent_cents: 400, resets_at: '2026-11-23T00:00:00.000Z' })
    clock.advance(3 * day)
    expect((await box.call('PATCH', `${path}/limits`, { period: 'one_time' })).body).toMatchObject({
      spent_cents: 0,
      resets_at: null,
    })
    await box.call('POST', `${path}/reveal`, { amount_cents: 1 })
    clock.advance(400 * day)
    expect((await box.call('GET', path)).body['spent_cents']).toBe(1)
  })
})
