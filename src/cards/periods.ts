import { iso } from '../core/clock.ts'
import { sql, type Sql } from '../store/database.ts'
import type { Period } from './model.ts'

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
