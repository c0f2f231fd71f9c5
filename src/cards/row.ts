import { iso } from '../core/clock.ts'
import { conflict, notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { type Reader, sql } from '../store/database.ts'
import type { Card, CardLimits } from './model.ts'
import { periodEnd } from './periods.ts'

/** A card without its encrypted data, which is in a separate table that only a reveal reads. */
export interface CardRow extends Omit<Card, 'label' | 'budget'> {
  seq: number
  account_id: string
  round: number
  resets_at: string | null
}

/** The row of a card that the caller may see; throws Fault not_found, also when its identity is deleted. */
export async function rowOf(reader: Reader, caller: Caller, id: string): Promise<CardRow> {
  const row = await reader.get<CardRow>(
    sql`SELECT * FROM cards WHERE id = ${id} AND account_id = ${caller.account_id} AND EXISTS
      (SELECT 1 FROM identities WHERE identities.id = cards.identity_id AND identities.status <> 'deleted')`,
  )
  if (!row || (caller.identity_id !== null && row.identity_id !== caller.identity_id)) throw notFound('card')
  return row
}

/** The same for changes; throws Fault conflict for a cancelled card. */
export async function livingRowOf(reader: Reader, caller: Caller, id: string): Promise<CardRow> {
  const row = await rowOf(reader, caller, id)
  if (row.status === 'cancelled') throw conflict('The card is cancelled and cannot be changed.', { code: 'card_cancelled' })
  return row
}

/** The amount spent, its period and when that resets, at this time: spending of an ended period does not count. */
export function budgetState(row: CardRow, now: number): Pick<CardRow, 'spent_cents' | 'round' | 'resets_at'> {
  const { spent_cents, round, resets_at } = row
  if (resets_at === null || resets_at > iso(now)) return { spent_cents, round, resets_at }
  return { spent_cents: 0, round: round + 1, resets_at: periodEnd(row.period, now) }
}

export function toCard(row: CardRow, now: number): Card {
  const { id, identity_id, last4, brand, exp_month, exp_year, budget_cents, status, card_name, currency, period } = row
  const { spent_cents } = budgetState(row, now)
  return {
    id,
    identity_id,
    last4,
    brand,
    exp_month,
    exp_year,
    budget_cents,
    spent_cents,
    status,
    card_name,
    label: card_name,
    budget: { amount: budget_cents, currency, period },
    currency,
    period,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

export function limitsOf(row: CardRow, now: number): CardLimits {
  const { id, budget_cents, status, period, currency } = row
  const { spent_cents, resets_at } = budgetState(row, now)
  return {
    card_id: id,
    budget_cents,
    spent_cents,
    remaining_cents: budget_cents - spent_cents,
    status,
    period,
    currency,
    resets_at,
  }
}
