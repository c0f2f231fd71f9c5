import { day, iso } from '../core/clock.ts'
import { type Reader, sql, type Sql } from './database.ts'

/** ISO 8601 times: rows older than `before` are old; one later than `latest` is of a clock that was ahead. */
export interface Ages {
  before: string
  latest: string
}

/** The ages for what is kept for so many milliseconds. */
export function agesAt(now: number, kept: number): Ages {
  return { before: iso(now - kept), latest: iso(now + day) }
}

/**
 * The first rows that are old, up to one that is not, of rows in the order in which they were written. A time of a clock that was ahead
 * counts as that of the next row. `following` selects `seq` and `at` of the rows after one.
 */
export async function oldRows<Row extends { seq: number; at: string }>(
  reader: Reader,
  rows: readonly Row[],
  { before, latest }: Ages,
  following: (seq: number) => Sql,
): Promise<Row[]> {
  const recent = rows.findIndex(({ at }) => at >= before && at <= latest)
  const first = recent === -1 ? rows : rows.slice(0, recent)
  const lastOld = first.findLastIndex(({ at }) => at < before)
  if (recent !== -1 || lastOld === first.length - 1) return first.slice(0, lastOld + 1)
  // all that follow may be of that clock, too
  const next = await reader.get<{ at: string }>(
    sql`SELECT at FROM (${following(first.at(-1)!.seq)}) AS following WHERE at <= ${latest} ORDER BY seq LIMIT 1`,
  )
  return next !== undefined && next.at < before ? [...first] : first.slice(0, lastOld + 1)
}
