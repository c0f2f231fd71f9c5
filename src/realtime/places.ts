import { iso } from '../core/clock.ts'
import { Fault, invalid } from '../core/fault.ts'
import { TimestampInput } from '../core/shapes.ts'
import type { EventLog } from '../events/log.ts'
import { sql } from '../store/database.ts'
import type { Sql } from '../store/database.ts'

/** Where a reader of the log begins: after `seq`, with events of `condition` only. */
export interface Place {
  seq: number
  condition: Sql
}

const anything = sql`1 = 1`

/** How far the times of neighbouring events may be out of order, in milliseconds. */
const disorder = 5000

/** How far back the event to resume from is looked for, so that a quiet account on a busy box costs little. */
const lookBack = 10_000

/** The place of the newest event. */
export async function endOf(events: EventLog): Promise<number> {
  return (await events.mark(Number.MAX_SAFE_INTEGER))?.seq ?? 0
}

/**
 * The place that `since` names: after an event, or where events are at or after a time. Throws Fault invalid_request, code
 * `since_expired`, for an event that is not in the log.
 */
export async function placeOf(events: EventLog, accountId: string, since: string): Promise<Place> {
  if (since.startsWith('evt_')) {
    const seq = await events.place(since, accountId)
    if (seq !== undefined) return { seq, condition: anything }
    throw new Fault('invalid_request', 'since names an event that is not (or no longer) in the log. Begin with a time.', {
      param: 'since',
      code: 'since_expired',
    })
  }
  const time = TimestampInput.safeParse(since)
  if (!time.success) throw invalid('since', 'since must be an evt_ id or an ISO 8601 time.')
  const early = new Date(Date.parse(time.data) - disorder).toISOString()
  return { seq: await placeAt(events, early), condition: sql`created_at >= ${time.data}` }
}

/**
 * What to resume after if nothing comes: the newest event that the condition selects up to `end`, or, when that is long past, the time of
 * the newest event of all.
 */
export async function markerAt(events: EventLog, end: number, condition: Sql): Promise<string> {
  const near = await events.last(sql`${condition} AND seq > ${end - lookBack} AND seq <= ${end}`)
  return near?.id ?? (await events.mark(end))?.created_at ?? iso(0)
}

/** The last place before a time. By halves: no index orders all events by time, but the log nearly is. */
async function placeAt(events: EventLog, time: string): Promise<number> {
  let low = 0
  let high = await endOf(events)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const mark = await events.mark(middle)
    if (mark && mark.created_at >= time) high = mark.seq - 1
    else low = middle
  }
  return low
}
