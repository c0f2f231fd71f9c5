import { afterAll, expect, test } from 'vitest'
import type { Clock } from '../../src/core/clock.ts'
import { Fault } from '../../src/core/fault.ts'
import type { AnyRoute } from '../../src/http/route.ts'
import { openAppliance } from '../support/appliance.ts'
import { randomFrom } from '../support/random.ts'
import { runs } from '../support/runs.ts'
import { cardsOf, inside, stored } from './settled.ts'

/** Never the same moment twice: what happened can be put in order, whichever table it is in. */
const clock: Clock & { time: number } = {
  time: Date.UTC(2026, 10, 20, 10, 5),
  now() {
    this.time += 1
    return this.time
  },
}

const { box, close } = await openAppliance({}, clock)
afterAll(close)
const at = await cardsOf(box, 'Ada')
const [{ account_id } = { account_id: '' }] = inside<{ account_id: string }>(box, 'SELECT account_id FROM identities')

type Any = ReturnType<typeof JSON.parse>

/** Calls the handler of a route as the API does, without thousands of connections; answers what it answers, or the code of its fault. */
async function ask(
  method: AnyRoute['method'],
  path: string,
  id: string,
  body: object = {},
): Promise<{ code?: string; body?: Any }> {
  const route = box.app.routes.find((one) => one.method === method && one.path === `/cards/:id${path}`)!
  const caller = {
    account_id,
    key_id: null,
    secret: 0,
    scopes: new Set(),
    identity_id: null,
    rate_limit: 0,
    until: Infinity,
    ip: '127.0.0.1',
    user_agent: '',
  }
  const input = {
    params: { id },
    query: {},
    body,
    caller,
    raw: { bytes: Buffer.alloc(0), headers: {}, search: '' },
    host: 'box.test',
    request_id: '',
    signal: AbortSignal.timeout(60_000),
    remember: async () => undefined,
  }
  try {
    return { body: await route.handle(input as never) }
  } catch (error) {
    if (error instanceof Fault) return { code: error.code ?? error.type }
    throw error
  }
}

async function newCard(changes: Record<string, unknown>): Promise<string> {
  return (await stored({ box, at }, changes)).split('/').at(-1)!
}

interface Row {
  type: string
  amount_cents: number | null
  allowed: number
  reason: string | null
  spent_cents: number
  created_at: string
}

const ledgerOf = (id: string): Row[] => inside<Row>(box, `SELECT * FROM card_transactions WHERE card_id = '${id}' ORDER BY seq`)

/** Far more than one commit of the store takes; each kind of call is among them often. */
const count = runs(2000)

test.each([1, 2])('thousands of reveals at once of amounts at random never reserve more than there is (%d)', async (seed) => {
  const roll = randomFrom(seed)
  const budget = 20_000 + roll(50_000)
  const id = await newCard({ budget_cents: budget })
  const amounts = Array.from({ length: count }, () => roll(500))
  const answers = await Promise.all(amounts.map((amount_cents) => ask('POST', '/reveal', id, { amount_cents })))
  const granted = amounts.filter((_, index) => answers[index]!.body !== undefined).reduce((sum, amount) => sum + amount, 0)
  expect(new Set(answers.map(({ code }) => code))).toEqual(new Set([undefined, 'budget_exceeded']))
  const { body: limits } = await ask('GET', '/limits', id)
  expect([granted, limits.remaining_cents]).toEqual([limits.spent_cents, budget - granted])
  expect(granted).toBeLessThanOrEqual(budget)

  // as if they had come one after the other: each is refused if, and only if, it is more than was left then
  let spent = 0
  const rows = ledgerOf(id)
  expect(rows).toHaveLength(amounts.length)
  for (const { amount_cents, allowed, spent_cents } of rows) {
    expect(allowed).toBe(Number(spent + amount_cents! <= budget))
    if (allowed) spent += amount_cents!
    expect(spent_cents).toBe(spent)
  }
})

test('thousands of calls of every kind at once do what they would do one after the other', async () => {
  const roll = randomFrom(101)
  const ids = await Promise.all(Array.from({ length: 10 }, () => newCard({ budget_cents: 2000 })))
  const answers = await Promise.all(
    Array.from({ length: count }, (_, turn) => {
      const id = ids[roll(ids.length)]!
      const kind = roll(100)
      if (kind < 70) return ask('POST', '/reveal', id, { amount_cents: roll(80) })
      if (kind < 76) return ask('POST', '/freeze', id)
      if (kind < 84) return ask('POST', '/unfreeze', id)
      if (kind < 90) return ask('PATCH', '/limits', id, { budget_cents: 1000 + roll(4000) })
      if (kind < 92) return ask('PATCH', '/limits', id, { reset_spent: true })
      if (kind < 96) return ask('POST', '/transactions', id, { type: 'refund', amount_cents: roll(100) })
      if (kind < 99) return ask('POST', '/transactions', id, { type: 'report', amount_cents: roll(100) })
      return turn > count / 2 ? ask('POST', '/cancel', id) : ask('GET', '', id)
    }),
  )
  const codes = new Set(answers.map(({ code }) => code))
  expect(codes).toEqual(
    new Set([
      undefined,
      'card_frozen',
      'card_cancelled',
      'card_not_frozen',
      ...(codes.has('budget_exceeded') ? ['budget_exceeded'] : []),
    ]),
  )
  let [revealed, refused] = [0, 0]
  for (const id of ids) {
    const told = replay(id)
    revealed += told.revealed
    refused += told.refused
    const { body: card } = await ask('GET', '', id)
    expect([card.status, card.spent_cents, card.budget_cents]).toEqual([told.status, told.spent, told.budget])
  }
  expect(revealed).toBeGreaterThan(count / 20)
  expect(refused).toBeGreaterThan(count / 20)
})

test('where a period ends between two looks at the clock, a reveal is told as of one of them', async () => {
  for (let before = 1; before <= 6; before += 1) {
    const id = await newCard({ budget: { amount: 1000, period: 'daily' } })
    clock.time = Math.ceil(clock.time / 86_400_000) * 86_400_000 - before
    const { body } = await ask('POST', '/reveal', id, { amount_cents: 300 })
    const [event] = inside<{ data: string }>(
      box,
      `SELECT data FROM events WHERE json_extract(data, '$.id') = '${id}' AND type = 'card.revealed'`,
    )
    const told = JSON.parse(event!.data) as { spent_cents: number }
    expect([before, told.spent_cents, body.card.spent_cents, body.transaction.spent_cents]).toEqual([before, 300, 300, 300])
  }
})

/** What the log and the ledger say of a card, in the order of their times, must be one story. */
function replay(id: string): { status: string; spent: number; budget: number; revealed: number; refused: number } {
  const events = inside<{ type: string; data: string; created_at: string }>(
    box,
    `SELECT type, data, created_at FROM events WHERE json_extract(data, '$.id') = '${id}' AND type <> 'card.revealed' ORDER BY seq`,
  )
  const story = [...events, ...ledgerOf(id)].toSorted((one, other) => (one.created_at < other.created_at ? -1 : 1))
  expect(new Set(story.map(({ created_at }) => created_at)).size).toBe(story.length)
  const card = { status: 'active', spent: 0, budget: 0, revealed: 0, refused: 0 }
  for (const step of story) {
    if ('data' in step) {
      const { status, budget_cents } = JSON.parse(step.data) as { status: string; budget_cents: number }
      // what is cancelled stays so
      expect(card.status).not.toBe('cancelled')
      card.status = status
      card.budget = budget_cents
      continue
    }
    const { type, amount_cents, allowed, reason, spent_cents } = step
    if (type === 'reveal') {
      const right =
        card.status !== 'active' ? `card_${card.status}` : card.spent + amount_cents! > card.budget ? 'budget_exceeded' : null
      expect([reason, allowed]).toEqual([right, Number(right === null)])
      if (allowed) card.revealed += 1
      else card.refused += 1
    } else expect(card.status).not.toBe('cancelled')
    if (type === 'reset') card.spent = 0
    else if (allowed) card.spent = Math.max(0, card.spent + (type === 'refund' ? -1 : 1) * amount_cents!)
    expect(spent_cents).toBe(card.spent)
  }
  const reveals = inside<{ count: number }>(
    box,
    `SELECT count(*) AS count FROM events WHERE json_extract(data, '$.id') = '${id}' AND type = 'card.revealed'`,
  )
  expect(reveals).toEqual([{ count: card.revealed }])
  return card
}
