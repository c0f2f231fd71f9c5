import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { hour, iso } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { conflict, invalid } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import type { EventType } from '../events/model.ts'
import { type Cascade, endSome, window } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import type { Holds } from '../policy/holds.ts'
import { sql, type Transaction } from '../store/database.ts'
import { storedForm } from './encrypted.ts'
import type { Ledger } from './ledger.ts'
import {
  type Card,
  cardCancelled,
  cardCreated,
  cardFrozen,
  type CardLimits,
  cardLimitsUpdated,
  cardUnfrozen,
  type LimitsChange,
  type NewCard,
  type Period,
} from './model.ts'
import { budgetState, type CardRow, limitsOf, livingRowOf, periodEnd, rowOf, toCard } from './row.ts'
import { eraseSecret, saveSecret } from './secrets.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'cursors'> {
  identities: Identities
  cascade: Cascade
  ledger: Ledger
  plan: Plan
  holds: Holds
}

/** The furthest time zone behind UTC, in milliseconds: a card is valid to the end of its month there. */
const latest = 12 * hour

/** The most cards, and the most transactions of cards, that are cleared at a time. */
const clearedAtATime = 100

export class Cards {
  readonly #deps: Deps
  /** The position of `clear` for each identity. */
  readonly #cleared = new Map<string, number>()

  constructor(deps: Deps) {
    this.#deps = deps
    // a few are cancelled with the identity, and the rest soon after
    deps.identities.onRemove(async (tx, identityId) => void (await this.#cancelSome(tx, identityId, 0)))
    deps.cascade.add((tx, identityId, after) => this.#cancelSome(tx, identityId, after))
    deps.plan.counts(
      'cards',
      (accountId) => sql`SELECT count(*) AS n FROM cards WHERE account_id = ${accountId} AND status <> 'cancelled'`,
    )
  }

  /**
   * Clears a batch of the cards of a deleted identity, and of their transactions. Returns whether there may be more. It continues where the last call
   * ended, so that each call costs one batch.
   */
  async clear(tx: Transaction, identityId: string): Promise<boolean> {
    const cards = await tx.all<{ seq: number; id: string; account_id: string }>(
      sql`SELECT seq, id, account_id FROM cards WHERE identity_id = ${identityId} AND seq > ${this.#cleared.get(identityId) ?? 0}
        ORDER BY seq LIMIT ${clearedAtATime}`,
    )
    let left = clearedAtATime
    let octets = 0
    let cleared: number | undefined
    for (const { seq, id } of cards) {
      const gone = await tx.all<{ octets: number }>(
        sql`DELETE FROM card_transactions WHERE seq IN (SELECT seq FROM card_transactions WHERE card_id = ${id} LIMIT ${left}) RETURNING octets`,
      )
      for (const row of gone) octets += row.octets
      left -= gone.length
      if (left === 0) break
      await this.#deps.holds.erase(tx, id)
      await tx.run(sql`UPDATE cards SET card_name = '', last4 = '', brand = '' WHERE seq = ${seq}`)
      cleared = seq
    }
    if (octets > 0) await this.#deps.plan.add(tx, cards[0]!.account_id, 'storage_bytes', -octets)
    tx.afterCommit(() => {
      if (cards.length === 0) this.#cleared.delete(identityId)
      else if (cleared !== undefined) this.#cleared.set(identityId, cleared)
    })
    return cards.length > 0
  }

  async create(caller: Caller, identityId: string, input: NewCard): Promise<Card> {
    const { database, clock, identities, plan } = this.#deps
    const name = nameOf(input)
    const { budget_cents, currency = 'usd', period = 'one_time' } = budgetOf(input)
    if (budget_cents === undefined) throw invalid('budget_cents', 'budget_cents (or budget.amount) is required.', 'missing')
    const encrypted = storedForm(input.encrypted_data)
    const now = clock.now()
    requireNotPast(input, now)
    return database.transaction(async (tx) => {
      const { account_id } = await identities.row(caller, identityId, tx)
      await plan.require(tx, account_id, 'cards')
      const slot = await saveSecret(tx, encrypted)
      const row = await tx.get<CardRow>(
        sql`INSERT INTO cards (id, account_id, identity_id, card_name, last4, brand, exp_month, exp_year, status, currency, period,
          budget_cents, resets_at, created_at, updated_at, secret_slot) VALUES (${newId('card')}, ${account_id}, ${identityId}, ${name},
          ${input.last4}, ${input.brand}, ${input.exp_month}, ${input.exp_year}, 'active', ${currency}, ${period}, ${budget_cents},
          ${periodEnd(period, now)}, ${iso(now)}, ${iso(now)}, ${slot}) RETURNING *`,
      )
      return this.#emit(tx, cardCreated, row!)
    })
  }

  async list(caller: Caller, identityId: string, paging: Paging): Promise<Page<Card>> {
    const { database, clock, cursors, identities } = this.#deps
    await identities.row(caller, identityId)
    return page<CardRow, Card>(database, cursors, paging, {
      name: `cards ${identityId}`,
      from: sql`cards`,
      account: caller.account_id,
      where: sql`identity_id = ${identityId}`,
      present: (row) => toCard(row, clock.now()),
    })
  }

  async get(caller: Caller, id: string): Promise<Card> {
    return toCard(await rowOf(this.#deps.database, this.#deps.clock, caller, id), this.#deps.clock.now())
  }

  async limits(caller: Caller, id: string): Promise<CardLimits> {
    return limitsOf(await rowOf(this.#deps.database, this.#deps.clock, caller, id), this.#deps.clock.now())
  }

  /** Freezes the card: no reveal succeeds once it resolves. A card that is already frozen stays so. */
  freeze(caller: Caller, id: string): Promise<Card> {
    return this.#deps.database.transaction(async (tx) => {
      const row = await livingRowOf(tx, this.#deps.clock, caller, id)
      if (row.status === 'frozen') return toCard(row, this.#deps.clock.now())
      return this.#emit(tx, cardFrozen, await this.#setStatus(tx, id, 'frozen'))
    })
  }

  unfreeze(caller: Caller, id: string): Promise<Card> {
    return this.#deps.database.transaction(async (tx) => {
      const { status } = await livingRowOf(tx, this.#deps.clock, caller, id)
      if (status !== 'frozen') throw conflict('The card is not frozen.', { code: 'card_not_frozen' })
      return this.#emit(tx, cardUnfrozen, await this.#setStatus(tx, id, 'active'))
    })
  }

  /** Permanent: the encrypted data is destroyed in the same transaction. */
  cancel(caller: Caller, id: string): Promise<Card> {
    return this.#deps.database.transaction(async (tx) => {
      await livingRowOf(tx, this.#deps.clock, caller, id)
      return this.#cancel(tx, id)
    })
  }

  setLimits(caller: Caller, id: string, change: LimitsChange): Promise<CardLimits> {
    const { database, clock, ledger } = this.#deps
    const input = budgetOf(change)
    const reset = resetOf(change)
    return database.transaction(async (tx) => {
      const row = await livingRowOf(tx, this.#deps.clock, caller, id)
      const now = clock.now()
      const before = { ...row, ...budgetState(row, now) }
      const { budget_cents = before.budget_cents, currency = before.currency, period = before.period } = input
      if (currency !== before.currency && before.spent_cents > 0 && !reset) {
        throw conflict(`Spending was recorded in ${before.currency}: the currency can be changed only with reset_spent.`, {
          code: 'currency_in_use',
          param: 'currency',
        })
      }
      const same = budget_cents === before.budget_cents && currency === before.currency && period === before.period
      if (same && !reset) return limitsOf(row, now)
      const kept = period === before.period && !reset
      const after = await tx.get<CardRow>(
        sql`UPDATE cards SET budget_cents = ${budget_cents}, currency = ${currency}, period = ${period},
          spent_cents = ${reset ? 0 : before.spent_cents}, round = ${before.round + Number(reset)},
          resets_at = ${kept ? before.resets_at : periodEnd(period, now)}, updated_at = ${iso(now)}
          WHERE id = ${id} RETURNING *`,
      )
      if (reset) await ledger.record(tx, caller, after!, now, { type: 'reset', amount_cents: before.spent_cents })
      await this.#emit(tx, cardLimitsUpdated, after!)
      return limitsOf(after!, now)
    })
  }

  async #cancelSome(tx: Transaction, identityId: string, after: number): Promise<number | undefined> {
    const rows = await tx.all<Pick<CardRow, 'id' | 'seq' | 'status'>>(
      sql`SELECT id, seq, status FROM cards WHERE identity_id = ${identityId} AND seq > ${after} ORDER BY seq LIMIT ${window}`,
    )
    return endSome(rows, async ({ id, status }) => {
      if (status === 'cancelled') return 0
      await this.#cancel(tx, id)
      return 1
    })
  }

  async #cancel(tx: Transaction, id: string): Promise<Card> {
    const row = await this.#setStatus(tx, id, 'cancelled')
    await this.#deps.holds.withdraw(tx, id)
    await eraseSecret(tx, row.secret_slot!)
    await tx.run(sql`UPDATE cards SET secret_slot = NULL WHERE seq = ${row.seq}`)
    return this.#emit(tx, cardCancelled, row)
  }

  async #setStatus(tx: Transaction, id: string, status: Card['status']): Promise<CardRow> {
    const row = await tx.get<CardRow>(
      sql`UPDATE cards SET status = ${status}, updated_at = ${iso(this.#deps.clock.now())} WHERE id = ${id} RETURNING *`,
    )
    return row!
  }

  async #emit(tx: Transaction, type: EventType<Card>, row: CardRow): Promise<Card> {
    const card = toCard(row, this.#deps.clock.now())
    await this.#deps.events.append(tx, type, { account_id: row.account_id, identity_id: row.identity_id, data: card })
    return card
  }
}

function requireNotPast({ exp_month, exp_year }: NewCard, now: number): void {
  const date = new Date(now - latest)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + 1]
  if (exp_year < year) throw invalid('exp_year', `exp_year must be ${year} or later: the card has expired.`, 'card_expired')
  if (exp_year === year && exp_month < month) {
    throw invalid('exp_month', `exp_month must be ${month} or later in ${year}: the card has expired.`, 'card_expired')
  }
}

interface BudgetInput {
  budget_cents: number | undefined
  currency: string | undefined
  period: Period | undefined
}

/** The budget of a call in either field naming. Throws Fault when both are given and differ. */
function budgetOf({ budget_cents, currency, period, budget }: LimitsChange | NewCard): BudgetInput {
  return {
    budget_cents: one('budget.amount', 'budget_cents', budget?.amount, budget_cents),
    currency: one('budget.currency', 'currency', budget?.currency, currency),
    period: one('budget.period', 'period', budget?.period, period),
  }
}

/** The name of a card in either field. Throws Fault when there is none, or two different ones. */
function nameOf({ card_name, label }: NewCard): string {
  const name = one('label', 'card_name', label, card_name)
  if (name === undefined) throw invalid('card_name', 'card_name (or label) is required.', 'missing')
  return name
}

function resetOf({ reset_spent, reset_spend }: LimitsChange): boolean {
  return one('reset_spend', 'reset_spent', reset_spend, reset_spent) ?? false
}

function one<Value>(param: string, other: string, value: Value | undefined, otherValue: Value | undefined): Value | undefined {
  if (value !== undefined && otherValue !== undefined && value !== otherValue) {
    throw invalid(param, `Send ${param} or ${other}, not two different values.`)
  }
  return value ?? otherValue
}
