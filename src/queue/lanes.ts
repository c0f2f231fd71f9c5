import { empty, join, type Run, sql, type Sql, type Transaction } from '../store/database.ts'
import type { ClaimedDelivery, Health } from './in-flight.ts'

/** Maximum rows of one transaction or statement, so that neither blocks the event loop. */
export const maxBatch = 64

/** Splits a list into batches. Their sizes are powers of two, so that there are few different statements. */
export function* batches<One>(all: readonly One[]): Generator<readonly One[]> {
  for (let first = 0; first < all.length;) {
    const size = 2 ** Math.floor(Math.log2(Math.min(all.length - first, maxBatch)))
    yield all.slice(first, first + size)
    first += size
  }
}

export type Lane = Pick<ClaimedDelivery, 'kind' | 'lane'>
export type AccountLane = Pick<ClaimedDelivery, 'kind' | 'lane' | 'account_id'>

/** The health of a lane as SQL, and the one that it has. */
export const healths: Record<Health, Sql> = { [1]: sql`1`, [0]: sql`0`, [-1]: sql`-1` }
export const unchanged = sql`sound`

/** The earliest due time, but not before now: a lane that was just served comes after those that were due before. */
export function earliest(now: string): Sql {
  return sql`(SELECT CASE WHEN min(d.due_at) < ${now} THEN ${now} ELSE min(d.due_at) END FROM deliveries_queue AS d
    WHERE d.kind = delivery_lanes.kind AND d.lane = delivery_lanes.lane AND d.account_id = delivery_lanes.account_id
    AND d.state = 'waiting')`
}

/** The condition that leaves out lanes in which another box has work under way: the limits of a lane are those of one box. */
export function notElsewhere({ shared, id }: Run): Sql {
  if (!shared) return empty
  return sql` AND NOT EXISTS (SELECT 1 FROM deliveries_queue AS d WHERE d.kind = delivery_lanes.kind AND d.lane = delivery_lanes.lane
    AND d.state = 'running' AND d.run_id <> ${id})`
}

/** Sets due times. The health of a lane holds for all of its accounts. */
export async function setDue(
  tx: Transaction,
  lanes: readonly (Lane & { account_id?: string; due?: string })[],
  now: string,
): Promise<void> {
  // each lane once, with its earliest time: an upsert must not meet a row twice
  const earliestOf = new Map<string, Required<(typeof lanes)[number]>>()
  for (const { kind, lane, account_id = '', due = now } of lanes) {
    const key = `${kind} ${lane} ${account_id}`
    const known = earliestOf.get(key)
    if (!known || due < known.due) earliestOf.set(key, { kind, lane, account_id, due })
  }
  const rows = [...earliestOf.values()].map(
    ({ kind, lane, account_id, due }) =>
      sql`(${kind}, ${lane}, ${account_id}, ${due},
        coalesce((SELECT sound FROM delivery_lanes WHERE kind = ${kind} AND lane = ${lane} LIMIT 1), 0))`,
  )
  await tx.run(
    sql`INSERT INTO delivery_lanes (kind, lane, account_id, due_at, sound) VALUES ${join(rows)}
      ON CONFLICT (kind, lane, account_id) DO UPDATE SET due_at = excluded.due_at
      WHERE delivery_lanes.closed = 0 AND (delivery_lanes.due_at IS NULL OR delivery_lanes.due_at > excluded.due_at)`,
  )
}

/** Changes the due time and the health of lanes: without an account of the whole lane. Unchanged rows are not written. */
export async function updateLanes(
  tx: Transaction,
  lanes: readonly (Lane & { account_id?: string })[],
  due: Sql,
  health: Sql = unchanged,
): Promise<void> {
  for (const alike of Map.groupBy(lanes, ({ kind, account_id }) => `${kind} ${account_id}`).values()) {
    const { kind, account_id } = alike[0]!
    const ofAccount = account_id === undefined ? empty : sql` AND account_id = ${account_id}`
    for (const some of batches(alike)) {
      await tx.run(
        sql`UPDATE delivery_lanes SET due_at = ${due}, sound = ${health} WHERE kind = ${kind}${ofAccount} AND closed = 0
          AND lane IN (${join(some.map(({ lane }) => lane))}) AND (sound <> ${health} OR due_at IS DISTINCT FROM ${due})`,
      )
    }
  }
}
