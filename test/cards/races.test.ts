import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { ledger, until } from './ledger.ts'
import { cardsOf, settled, stored } from './settled.ts'

test('200 at once on one card with a budget for 10: exactly 10 pass, and the ledger adds up', async () => {
  const world = await settled()
  const { box } = world
  const path = await stored(world, { budget_cents: 1000 })
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0
        ? box.call('POST', `${path}/reveal`, { amount_cents: 100 })
        : box.call('GET', `${path}/reveal?amount_cents=100`),
    ),
  )
  const passed = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status !== 200)
  expect(passed).toHaveLength(10)
  expect(new Set(refused.map(({ body }) => body.error.code as string))).toEqual(new Set(['budget_exceeded']))
  const rows = await ledger((method, at) => box.call(method, at), path)
  expect(rows).toHaveLength(200)
  expect(rows.filter(({ allowed }) => allowed).map(({ spent_cents }) => spent_cents)).toEqual(
    Array.from({ length: 10 }, (_, index) => (index + 1) * 100),
  )
  expect(passed.map(({ body }) => body['transaction'].id as string).toSorted()).toEqual(
    rows
      .filter(({ allowed }) => allowed)
      .map(({ id }) => id)
      .toSorted(),
  )
  expect((await box.call('GET', `${path}/limits`)).body).toMatchObject({ spent_cents: 1000, remaining_cents: 0 })
})

test('a changing budget and reports beside many reveals: never more reserved than there was at the time', async () => {
  const world = await settled()
  const { box } = world
  const path = await stored(world, { budget_cents: 1000 })
  const budgets = [1000, 400, 2500, 0, 1700]
  await Promise.all([
    ...Array.from({ length: 100 }, (_, index) => box.call('POST', `${path}/reveal`, { amount_cents: 10 + index })),
    ...budgets.map((budget_cents) => box.call('PATCH', `${path}/limits`, { budget_cents })),
    ...Array.from({ length: 5 }, () => box.call('POST', `${path}/transactions`, { type: 'refund', amount_cents: 70 })),
  ])
  const rows = await ledger((method, at) => box.call(method, at), path)
  let spent = 0
  for (const { type, amount_cents, allowed, spent_cents } of rows) {
    if (allowed) spent = type === 'refund' ? Math.max(0, spent - amount_cents) : spent + amount_cents
    expect(spent_cents).toBe(spent)
  }
  const { body: events } = await box.call('GET', `${world.at.replace('/cards', '/events')}?type=card.revealed&limit=200`)
  expect(events.data.length).toBeGreaterThan(0)
  for (const { data } of events.data) expect(data.spent_cents).toBeLessThanOrEqual(data.budget_cents)
  expect((await box.call('GET', path)).body['spent_cents']).toBe(spent)
})

test('after a freeze or a cancellation is answered no reveal succeeds, whatever was under way', async () => {
  const box = await appliance()
  const at = await cardsOf(box, 'Ada')
  for (let round = 0; round < 20; round += 1) {
    const path = await stored({ box, at }, { budget_cents: 1_000_000 })
    let passed = 0
    let answered = false
    const callers = Array.from({ length: 6 }, async () => {
      for (;;) {
        const begunAfter = answered
        const { status } = await box.call('POST', `${path}/reveal`, { amount_cents: 1 })
        if (status !== 200) return status
        expect(begunAfter).toBe(false)
        passed += 1
      }
    })
    await until(() => passed > round % 7)
    expect((await box.call('POST', `${path}/${round % 2 === 0 ? 'freeze' : 'cancel'}`)).status).toBe(200)
    answered = true
    expect(await Promise.all(callers)).toEqual([403, 403, 403, 403, 403, 403])
    // in the order of their commits: whatever was allowed comes before all that was refused
    const rows = await ledger((method, at_) => box.call(method, at_), path)
    expect(rows.map(({ allowed }) => allowed)).toEqual([
      ...Array.from({ length: passed }, () => true),
      ...Array.from({ length: 6 }, () => false),
    ])
  }
})
