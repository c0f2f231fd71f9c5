import { strict as assert } from 'node:assert'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { Period } from '../../src/cards/model.ts'
import { openAppliance } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { HeldClock } from '../support/held-clock.ts'
import { cardsOf } from './settled.ts'

const clock = new HeldClock(Date.UTC(2028, 1, 27, 22))
const { box, close } = await openAppliance({}, clock)
afterAll(close)
const at = await cardsOf(box, 'Ada')

/** What a card ought to do, said as plainly as can be: each period has a name, and what is spent is spent of the one it was spent in. */
class Model {
  status: 'active' | 'frozen' | 'cancelled' = 'active'
  spent = 0
  resets = 0
  counted = ''
  readonly reveals: { id: string; amount: number; when: string; reported: boolean }[] = []

  budget: number
  period: Period

  constructor(budget: number, period: Period) {
    this.budget = budget
    this.period = period
    this.enter()
  }

  /** The period of now, by name. */
  get now(): string {
    const text = new Date(clock.now()).toISOString()
    const monday = Math.floor((clock.now() / 86_400_000 + 3) / 7)
    const names = {
      one_time: 'ever',
      daily: text.slice(0, 10),
      weekly: `${monday}`,
      monthly: text.slice(0, 7),
      yearly: text.slice(0, 4),
    }
    return names[this.period]
  }

  enter(): void {
    if (this.counted !== this.now && this.counted !== '') this.begin()
    this.counted = this.now
  }

  begin(): void {
    this.spent = 0
    this.resets += 1
  }

  get round(): string {
    return `${this.resets}`
  }
}

type Step = (model: Model, path: string) => Promise<void>

const amount = fc.oneof({ weight: 8, arbitrary: fc.integer({ min: 0, max: 60 }) }, fc.constantFrom(0, 100, 1000))

const reveal = fc
  .record({ kind: fc.constantFrom('POST', 'GET'), amount: fc.option(amount, { nil: undefined }) })
  .map((input): Step => async (model, path) => {
    const { status, body } =
      input.kind === 'POST'
        ? await box.call('POST', `${path}/reveal`, { amount_cents: input.amount })
        : await box.call('GET', `${path}/reveal${input.amount === undefined ? '' : `?amount_cents=${input.amount}`}`)
    const reserved = input.amount ?? 0
    const fits = input.amount === undefined || model.spent + reserved <= model.budget
    const expected = model.status !== 'active' ? `card_${model.status}` : fits ? 200 : 'budget_exceeded'
    assert.equal(status === 200 ? 200 : body.error.code, expected)
    if (status !== 200) return
    model.spent += reserved
    model.reveals.push({ id: body['transaction'].id, amount: reserved, when: model.round, reported: false })
  })

const spend = fc
  .record({ type: fc.constantFrom('report', 'refund'), amount_cents: amount, which: fc.option(fc.nat(20), { nil: undefined }) })
  .map(({ type, amount_cents, which }): Step => async (model, path) => {
    const named = which === undefined ? undefined : model.reveals[which % Math.max(1, model.reveals.length)]
    const input = { type, amount_cents, reveal_id: named?.id }
    const { status } = await box.call('POST', `${path}/transactions`, input)
    const twice = type === 'report' && named?.reported === true
    assert.equal(status, model.status === 'cancelled' || twice ? 409 : 201)
    if (status !== 201) return
    const replaced = named?.when === model.round ? amount_cents - named.amount : 0
    const change = type === 'refund' ? -amount_cents : named ? replaced : amount_cents
    model.spent = Math.max(0, model.spent + change)
    if (named && type === 'report') named.reported = true
  })

const limits = fc
  .record(
    {
      budget_cents: amount,
      period: fc.constantFrom<Period>('one_time', 'daily', 'weekly', 'monthly', 'yearly'),
      reset_spent: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  .map((input): Step => async (model, path) => {
    const { status } = await box.call('PATCH', `${path}/limits`, input)
    assert.equal(status, model.status === 'cancelled' ? 409 : 200)
    if (status !== 200) return
    model.budget = input.budget_cents ?? model.budget
    model.period = input.period ?? model.period
    model.counted = model.now
    if (input.reset_spent) model.begin()
  })

const change = fc
  .constantFrom('freeze', 'freeze', 'unfreeze', 'unfreeze', 'unfreeze', 'cancel')
  .map((call): Step => async (model, path) => {
    const { status } = await box.call('POST', `${path}/${call}`)
    const allowed = model.status !== 'cancelled' && (call !== 'unfreeze' || model.status === 'frozen')
    assert.equal(status, allowed ? 200 : 409)
    if (allowed) model.status = call === 'freeze' ? 'frozen' : call === 'cancel' ? 'cancelled' : 'active'
  })

const wait = fc.constantFrom(1000, 3_600_000, 7_200_000, 86_400_000, 40 * 86_400_000).map((time): Step => async (model) => {
  clock.advance(time)
  model.enter()
})

test('a card does what a small model of it does, whatever is asked in whatever order', async () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: reveal },
      { weight: 4, arbitrary: spend },
      { weight: 2, arbitrary: limits },
      { weight: 1, arbitrary: change },
      {
        weight: 3,
        arbitrary: wait,
      },
    ),
    { minLength: 5, maxLength: 30 },
  )
  const begin = fc.record({ budget: amount, period: fc.constantFrom<Period>('one_time', 'daily', 'weekly', 'monthly', 'yearly') })
  await fc.assert(
    fc.asyncProperty(begin, steps, async ({ budget, period }, walk) => {
      const { body: made } = await box.call('POST', at, card({ exp_year: 9999, budget: { amount: budget, period } }))
      const path = `/v1/cards/${made.id}`
      const model = new Model(budget, period)
      for (const step of walk) {
        await step(model, path)
        const { body } = await box.call('GET', `${path}/limits`)
        expect(body).toMatchObject({
          status: model.status,
          budget_cents: model.budget,
          spent_cents: model.spent,
          period: model.period,
        })
        expect(body['remaining_cents']).toBe(model.budget - model.spent)
      }
    }),
    { numRuns: Number(process.env['PILLARBOX_TEST_RUNS'] ?? 150), seed: 20_261_120 },
  )
})
