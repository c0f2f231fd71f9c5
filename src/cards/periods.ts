import { iso } from '../core/clock.ts'
import { sql, type Sql } from '../store/database.ts'
import type { Period } from './model.ts'

/** When the UTC period that holds this moment ends, in ISO 8601; null for what never resets. Weeks begin on Monday (ISO 8601). */
export function periodEnd(period: Period, now: number): string | null {
  return ends[period](new Date(now))
}

/** The column `spent_cents` as it stands at this moment: 0 once its period is over. */
export function spentAt(now: number): Sql {
  return sql`CASE WHEN resets_at <= ${iso(now)} THEN 0 ELSE spent_cents END`
}

/** The assignments that carry a row of cards over into the period of this moment; they go with one to `spent_cents`. */
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

/** A day beyond its month is one of the next. */
function midnight(year: number, month: number, day: number): string {
  return iso(Date.UTC(year, month, day))
}
