import { iso } from '../core/clock.ts'
import { Fault, invalid } from '../core/fault.ts'
import { TimestampInput } from '../core/shapes.ts'
import { sql, type Sql } from '../store/database.ts'
import type { EventLog } from './log.ts'

/** The start of a reader: events after `seq` that `condition` selects. */
export interface LogPosition {
  seq: number
  condition: Sql
}

const noCondition = sql`1 = 1`

/** How far the times of neighbouring events may be out of order, in milliseconds. */
const maxDisorder = 5000

/** The position of the newest event. */
export async function endOf(events: EventLog): Promise<number> {
  return (await events.newestUpTo(Number.MAX_SAFE_INTEGER))?.seq ?? 0
}

/**
 * The position that `since` names: after an event, or where events are at or after a time. Throws Fault invalid_request, code
 * `since_expired`, for an event that is not in the log.
 */
export async function positionOf(events: EventLog, accountId: string, since: string): Promise<LogPosition> {
  if (since.startsWith('evt_')) {
    const seq = await events.seqOf(since, accountId)
    if (seq !== undefined) return { seq, condition: noCondition }
    throw new Fault('invalid_request', 'since names an event that is not, or no longer, in the log. Start from a time instead.', {
      param: 'since',
      code: 'since_expired',
    })
  }
  const time = TimestampInput.safeParse(since)
  if (!time.success) throw invalid('since', 'since must be an evt_ id or an ISO 8601 time.')
  const early = new Date(Date.parse(time.data) - maxDisorder).toISOString()
  return { seq: await positionAt(events, early), condition: sql`created_at >= ${time.data}` }
}

/** The last position before a time, by binary search: there is no index by time, but the log is nearly in that order. */
async function positionAt(events: EventLog, time: string): Promise<number> {
  let low = 0
  let high = await endOf(events)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const mark = await events.newestUpTo(middle)
    if (mark && mark.created_at >= time) high = mark.seq - 1
    else low = middle
  }
  return low
}

/** How many events back the last matching event is searched: where none matches all are read, as often as a client asks for that. */
const lookBack = 300

/**
 * The marker to resume after when nothing was sent: the newest event that the condition selects up to `end`, or, when that is too far back,
 * the time of the newest event of all.
 */
export async function markerAt(events: EventLog, end: number, condition: Sql): Promise<string> {
  const near = await events.last(sql`${condition} AND seq > ${end - lookBack} AND seq <= ${end}`)
  return near?.id ?? (await events.newestUpTo(end))?.created_at ?? iso(0)
}
