import { type Clock, iso } from '../core/clock.ts'
import { conflict, notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { picked } from '../core/shapes.ts'
import { isOfLiving } from '../identities/row.ts'
import { type Reader, sql, type Sql } from '../store/database.ts'
import { Card, CardLimits, type Period } from './model.ts'

/** A card without its encrypted data, which is in a separate table that only a reveal reads. */
export interface CardRow extends Omit<Card, 'label' | 'budget'> {
  seq: number
  account_id: string
  round: number
  resets_at: string | null
  /** Of `card_secrets`; null once the card is cancelled. */
  secret_slot: number | null
}

/** The row of a card that the caller may see; throws Fault not_found, also when its identity is deleted. */
export async function rowOf(reader: Reader, clock: Clock, caller: Caller, id: string): Promise<CardRow> {
  const row = await reader.get<CardRow>(
    sql`SELECT * FROM cards WHERE id = ${id} AND account_id = ${caller.account_id} AND ${isOfLiving(sql`identity_id`, iso(clock.now()))}`,
  )
  if (!row || (caller.identity_id !== null && row.identity_id !== caller.identity_id)) throw notFound('card')
  return row
}

/** The same for changes; throws Fault conflict for a cancelled card. */
export async function livingRowOf(reader: Reader, clock: Clock, caller: Caller, id: string): Promise<CardRow> {
  const row = await rowOf(reader, clock, caller, id)
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
  const { card_name: label, budget_cents: amount, currency, period } = row
  const { spent_cents } = budgetState(row, now)
  return picked(Card, { ...row, spent_cents, label, budget: { amount, currency, period } })
}

export function limitsOf(row: CardRow, now: number): CardLimits {
  const current = { ...row, ...budgetState(row, now) }
  return picked(CardLimits, { ...current, card_id: row.id, remaining_cents: row.budget_cents - current.spent_cents })
}

/** The end of the UTC period that contains this time, in ISO 8601; null without a reset. Weeks begin on Monday (ISO 8601). */
export function periodEnd(period: Period, now: number): string | null {
  return ends[period](new Date(now))
}

/** The column `spent_cents` at this time: 0 once its period has ended. */
export function spentAt(now: number): Sql {
  return sql`CASE WHEN resets_at <= ${iso(now)} THEN 0 ELSE spent_cents END`
}

/** The assignments that move a row of cards to the current period, used together with one to `spent_cents`. */
export function rollOver(now: number): Sql {
  const end = sql`CASE period WHEN 'daily' THEN ${periodEnd('daily', now)} WHEN 'weekly' THEN ${periodEnd('weekly', now)}
    WHEN 'monthly' THEN ${periodEnd('monthly', now)} WHEN 'yearly' THEN ${periodEnd('yearly', now)} END`
  return sql`round = round + CASE WHEN resets_at <= ${iso(now)} THEN 1 ELSE 0 END,
    resets_at = CASE WHEN resets_at <= ${iso(now)} THEN ${end} ELSE resets_at END`
}

const ends: Record<Period, (date: Date) => string | null> = {
  one_time: () => null,
  daily: (date) => midnight(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + 1),
  weekly: (date) => midnight(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + 7 - ((date.getUTCDay() + 6) % 7)),
  monthly: (date) => midnight(date.getUTCFullYear(), date.getUTCMonth() + 1, 1),
  yearly: (date) => midnight(date.getUTCFullYear() + 1, 0, 1),
}

/** A day beyond its month is in the next. */
function midnight(year: number, month: number, day: number): string {
  return iso(Date.UTC(year, month, day))
}
