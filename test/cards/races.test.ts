import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { appliance, bootstrapKey } from '../support/appliance.ts'
import { blob, card } from '../support/card.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { cardsOf, settled, stored } from './settled.ts'

interface Row {
  id: string
  type: string
  amount_cents: number
  allowed: boolean
  reason: string | null
  spent_cents: number
}

type Ask = (method: string, path: string, body?: unknown, key?: string) => Promise<{ status: number; body: Any }>
type Any = ReturnType<typeof JSON.parse>

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

test('killed in the middle: what is spent is what was allowed, never more than the budget', async () => {
  const home = mkdtempSync(join(tmpdir(), 'pillarbox-cards-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data'), PILLARBOX_BOOTSTRAP_KEY: bootstrapKey }
  const opened = async (): Promise<{ box: ReturnType<typeof boxProcess>; ask: Ask }> => {
    const box = boxProcess(env)
    const { api } = await box.said('started')
    return { box, ask: (...question) => asking(api as string, ...question) }
  }
  let { box, ask } = await opened()
  const { body: ada } = await ask('POST', '/v1/identities', {})
  const paths: string[] = []
  const secrets: string[] = []
  for (let round = 0; round < 4; round += 1) {
    const encrypted_data = blob()
    const { body: made } = await ask('POST', `/v1/identities/${ada.id}/cards`, card({ encrypted_data, budget_cents: 1000 }))
    paths.push(`/v1/cards/${made.id}`)
    secrets.push(encrypted_data)
  }

  const cut: number[] = []
  for (const [round, path] of paths.entries()) {
    const told = new Map<number, string>()
    const storm = Array.from({ length: 200 }, async (_, index) => {
      const { status, body } = await ask('POST', `${path}/reveal`, { amount_cents: 100 }, `reveal ${index}`)
      if (status === 200) told.set(index, body.transaction.id as string)
    })
    // at another moment each round: as soon as so many were told, or after a while
    await Promise.race([Promise.allSettled(storm), until(() => told.size > round * 2)])
    await box.end('SIGKILL')
    cut.push((await Promise.allSettled(storm)).filter(({ status }) => status === 'rejected').length)
    ;({ box, ask } = await opened())

    const before = await ledger(ask, path)
    const allowed = before.filter((row) => row.allowed)
    const { body: limits } = await ask('GET', `${path}/limits`)
    expect(limits.spent_cents).toBe(allowed.length * 100)
    expect(limits.spent_cents).toBeLessThanOrEqual(1000)
    const ids = new Set(allowed.map(({ id }) => id))
    for (const id of told.values()) expect(ids.has(id)).toBe(true)

    // every call once more with its key: what was reserved is handed out without a second charge, the rest is decided now
    const again = await Promise.all(
      Array.from({ length: 200 }, (_, index) => ask('POST', `${path}/reveal`, { amount_cents: 100 }, `reveal ${index}`)),
    )
    const passed = again.filter(({ status }) => status === 200)
    expect(again.filter(({ status }) => status !== 200 && status !== 403)).toEqual([])
    expect(passed).toHaveLength(10)
    for (const { body } of passed) expect(body.encrypted_data).toBe(secrets[round])
    for (const [index, id] of told) expect([index, again[index]!.body.transaction?.id]).toEqual([index, id])
    const after = (await ledger(ask, path)).filter((row) => row.allowed && row.reason === null)
    expect(after.map(({ spent_cents }) => spent_cents)).toEqual(Array.from({ length: 10 }, (_, index) => (index + 1) * 100))
    expect((await ask('GET', `${path}/limits`)).body).toMatchObject({ spent_cents: 1000, remaining_cents: 0 })
  }
  expect(Math.max(...cut)).toBeGreaterThan(0)
  await box.end('SIGTERM')
})

/** All transactions of a card, oldest first. */
async function ledger(ask: Ask, path: string): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor = ''; ;) {
    const { body } = await ask('GET', `${path}/transactions?limit=200${cursor}`)
    rows.push(...(body.data as Row[]))
    if (!body.has_more) return rows.toReversed()
    cursor = `&cursor=${body.next_cursor}`
  }
}

async function asking(api: string, method: string, path: string, body?: unknown, key?: string): ReturnType<Ask> {
  const response = await fetch(`${api}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${bootstrapKey}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: await response.json() }
}

async function until(happened: () => boolean): Promise<void> {
  while (!happened()) await new Promise((resolve) => setTimeout(resolve, 1))
}
