import { describe, expect, test } from 'vitest'
import { settled, stored } from './settled.ts'

describe('spending', () => {
  test('a report replaces what its reveal reserved, once, and is never refused for the budget', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    const { body: revealed } = await box.call('POST', `${path}/reveal`, { amount_cents: 800 })
    const reveal_id = revealed['transaction'].id as string
    const report = (input: object) => box.call('POST', `${path}/transactions`, { type: 'report', ...input })
    const first = await report({ amount_cents: 650, reveal_id, description: 'ticket' })
    expect(first.status).toBe(201)
    expect(first.body).toMatchObject({
      type: 'report',
      amount_cents: 650,
      reveal_id,
      description: 'ticket',
      spent_cents: 650,
      allowed: true,
    })
    expect((await report({ amount_cents: 1, reveal_id })).body.error).toMatchObject({
      status: 409,
      code: 'already_reported',
      param: 'reveal_id',
    })
    expect((await report({ amount_cents: 1000 })).body['spent_cents']).toBe(1650)
    expect((await box.call('GET', `${path}/limits`)).body).toMatchObject({ spent_cents: 1650, remaining_cents: -650 })
    for (const input of [{ amount_cents: 0 }, { amount_cents: 1 }]) {
      expect((await box.call('POST', `${path}/reveal`, input)).body.error.code).toBe('budget_exceeded')
    }
    const refund = await box.call('POST', `${path}/transactions`, { type: 'refund', amount_cents: 5000, reveal_id })
    expect(refund.body).toMatchObject({ type: 'refund', amount_cents: 5000, spent_cents: 0, reveal_id })
    expect((await box.call('GET', `${path}/limits`)).body).toMatchObject({ spent_cents: 0, remaining_cents: 1000 })
  })

  test('a report cannot name what is no reveal of this card that was allowed', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    const other = await stored(world, { budget_cents: 1000 })
    const headers = { 'Idempotency-Key': 'twice' }
    const elsewhere = (await box.call('POST', `${other}/reveal`)).body['transaction'].id as string
    await box.call('POST', `${path}/reveal`, { amount_cents: 5000 })
    await box.call('POST', `${path}/reveal`, {}, { headers })
    await box.call('POST', `${path}/reveal`, {}, { headers })
    const { body: report } = await box.call('POST', `${path}/transactions`, { type: 'report', amount_cents: 1 })
    const { body: list } = await box.call('GET', `${path}/transactions?type=reveal`)
    const of = (reason: string): string => list.data.find((row) => row.reason === reason)!.id
    const wrong = [elsewhere, report.id as string, of('budget_exceeded'), of('repeated'), 'txn_01jd3v8m2ef1pbx9mz5k7q4w6a']
    for (const reveal_id of wrong) {
      for (const type of ['report', 'refund']) {
        const { body } = await box.call('POST', `${path}/transactions`, { type, amount_cents: 9, reveal_id })
        expect([reveal_id, body.error?.code, body.error?.param]).toEqual([reveal_id, 'no_such_reveal', 'reveal_id'])
      }
    }
    expect((await box.call('GET', path)).body['spent_cents']).toBe(1)
  })

  test('what cannot be counted is refused, not rounded', async () => {
    const world = await settled()
    const { box } = world
    const most = Number.MAX_SAFE_INTEGER
    const path = await stored(world, { budget_cents: most })
    const report = (amount_cents: number) => box.call('POST', `${path}/transactions`, { type: 'report', amount_cents })
    expect((await report(most)).body['spent_cents']).toBe(most)
    expect((await report(1)).body.error).toMatchObject({ status: 400, param: 'amount_cents' })
    expect((await box.call('POST', `${path}/reveal`, { amount_cents: most })).body.error.code).toBe('budget_exceeded')
    await box.call('PATCH', `${path}/limits`, { budget_cents: 0 })
    expect((await box.call('GET', `${path}/limits`)).body['remaining_cents']).toBe(-most)
  })

  test('limits are changed in every spelling, and set back', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    await box.call('POST', `${path}/reveal`, { amount_cents: 400 })
    const id = path.split('/').at(-1)
    const base = { card_id: id, status: 'active', currency: 'usd', period: 'one_time', resets_at: null }
    const patch = async (change: object): Promise<unknown> => (await box.call('PATCH', `${path}/limits`, change)).body
    expect(await patch({})).toEqual({ ...base, budget_cents: 1000, spent_cents: 400, remaining_cents: 600 })
    expect(await patch({ budget_cents: 300 })).toEqual({ ...base, budget_cents: 300, spent_cents: 400, remaining_cents: -100 })
    expect(await patch({ currency: 'eur' })).toMatchObject({ error: { status: 409, code: 'currency_in_use', param: 'currency' } })
    expect(await patch({ budget: { amount: 2000, currency: 'USD', period: 'monthly' } })).toEqual({
      ...base,
      budget_cents: 2000,
      spent_cents: 400,
      remaining_cents: 1600,
      period: 'monthly',
      resets_at: '2026-12-01T00:00:00.000Z',
    })
    expect(await patch({ reset_spent: false })).toMatchObject({ spent_cents: 400 })
    expect(await patch({ reset_spent: true })).toMatchObject({ spent_cents: 0, remaining_cents: 2000 })
    await box.call('POST', `${path}/reveal`, { amount_cents: 100 })
    expect(await patch({ reset_spend: true, currency: 'eur', period: 'daily' })).toMatchObject({
      spent_cents: 0,
      currency: 'eur',
      resets_at: '2026-11-21T00:00:00.000Z',
    })
    for (const [wrong, param] of [
      [{ budget_cents: -1 }, 'budget_cents'],
      [{ budget: { amount: -1 } }, 'budget.amount'],
      [{ budget: {}, budget_cents: 1, budget_sense: 1 }, 'budget_sense'],
      [{ budget: { amount: 1 }, budget_cents: 2 }, 'budget.amount'],
      [{ reset_spent: true, reset_spend: false }, 'reset_spend'],
      [{ period: 'never' }, 'period'],
    ] as const) {
      expect(await patch(wrong)).toMatchObject({ error: { status: 400, param } })
    }
    const { body } = await box.call('GET', `${path}/transactions?type=reset`)
    expect(body.data.map(({ amount_cents, spent_cents }) => [amount_cents, spent_cents])).toEqual([
      [100, 0],
      [400, 0],
    ])
  })

  test('transactions come in pages, of one type if asked', async () => {
    const world = await settled()
    const { box } = world
    const path = await stored(world, { budget_cents: 1000 })
    for (let turn = 0; turn < 7; turn += 1) {
      await box.call('POST', `${path}/reveal`, { amount_cents: turn })
      await box.call('POST', `${path}/transactions`, { type: 'refund', amount_cents: turn })
    }
    const seen: number[] = []
    for (let cursor = ''; ;) {
      const { body } = await box.call('GET', `${path}/transactions?type=refund&limit=3${cursor}`)
      seen.push(...body.data.map(({ amount_cents }) => amount_cents as number))
      if (!body['has_more']) break
      cursor = `&cursor=${body['next_cursor']}`
      const { body: other } = await box.call('GET', `${path}/transactions?type=reveal${cursor}`)
      expect(other.error.code).toBe('bad_cursor')
    }
    expect(seen).toEqual([6, 5, 4, 3, 2, 1, 0])
    expect((await box.call('GET', `${path}/transactions?type=spend`)).body.error.param).toBe('type')
  })
})
