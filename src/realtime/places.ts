import { iso } from '../core/clock.ts'
import type { EventLog } from '../events/log.ts'
import { sql, type Sql } from '../store/database.ts'

/** How many events back the last matching event is searched, so that a quiet account on a busy box costs little. */
const lookBack = 10_000

/**
 * The marker to resume after when nothing was sent: the newest event that the condition selects up to `end`, or, when that is too far back,
 * the time of the newest event of all.
 */
export async function markerAt(events: EventLog, end: number, condition: Sql): Promise<string> {
  const near = await events.last(sql`${condition} AND seq > ${end - lookBack} AND seq <= ${end}`)
  return near?.id ?? (await events.newestUpTo(end))?.created_at ?? iso(0)
}
