import { type Database, sql, type Transaction } from '../store/database.ts'

interface AccountLane {
  kind: string
  lane: string
  account_id: string
}

interface LaneRow extends AccountLane {
  due_at: string | null
}

/** The most lanes of one transaction. */
const batch = 64

/**
 * Repairs a batch of lanes, in their order: one with waiting deliveries but no due time gets one (there should be none), and one in
 * which no account has deliveries is removed. A retry that is due after `far`, later than any schedule allows, was planned while the clock was
 * wrong and becomes due now. A delivery that was never attempted and is due later than it was created is scheduled, and stays. Times are ISO
 * 8601. Returns the last lane of the batch, to continue after it; undefined when there are no more.
 */
export async function repairSome(
  database: Database,
  now: string,
  far: string,
  after: AccountLane = { kind: '', lane: '', account_id: '' },
): Promise<AccountLane | undefined> {
  const lanes = await database.all<LaneRow & { sound: 0 | 1 }>(
    sql`SELECT kind, lane, account_id, due_at, 
        closed = 1 OR CASE WHEN due_at IS NULL THEN ${used} AND ${earliest} IS NULL ELSE due_at <= ${far} END AS sound
      FROM delivery_lanes WHERE (kind, lane, account_id) > (${after.kind}, ${after.lane}, ${after.account_id})
      ORDER BY kind, lane, account_id LIMIT ${batch}`,
  )
  const unsound = lanes.filter(({ sound }) => sound === 0)
  if (unsound.length > 0) {
    await database.transaction(async (tx) => {
      for (const lane of unsound) await (lane.due_at === null ? repairIdle(tx, lane) : repairLate(tx, lane, now, far))
    })
  }
  return lanes.length < batch ? undefined : lanes.at(-1)
}

/** Of a row of `delivery_lanes`. Its lane counts for all accounts: whether one account has deliveries in it is in no index. */
const used = sql`EXISTS (SELECT 1 FROM deliveries_queue AS d WHERE d.kind = delivery_lanes.kind AND d.lane = delivery_lanes.lane)`
const earliest = sql`(SELECT min(due_at) FROM deliveries_queue AS d WHERE d.kind = delivery_lanes.kind AND d.lane = delivery_lanes.lane
  AND d.account_id = delivery_lanes.account_id AND d.state = 'waiting')`

async function repairIdle(tx: Transaction, { kind, lane, account_id }: AccountLane): Promise<void> {
  const its = sql`kind = ${kind} AND lane = ${lane} AND account_id = ${account_id} AND due_at IS NULL AND closed = 0`
  const { changes } = await tx.run(sql`DELETE FROM delivery_lanes WHERE ${its} AND NOT ${used}`)
  if (changes === 0) await tx.run(sql`UPDATE delivery_lanes SET due_at = ${earliest} WHERE ${its}`)
}

async function repairLate(tx: Transaction, { kind, lane, account_id }: AccountLane, now: string, far: string): Promise<void> {
  const its = sql`kind = ${kind} AND lane = ${lane} AND account_id = ${account_id}`
  await tx.run(
    sql`UPDATE deliveries_queue SET due_at = ${now} WHERE ${its} AND state = 'waiting' AND due_at > ${far}
      AND (attempts > 0 OR due_at <= created_at)`,
  )
  await tx.run(sql`UPDATE delivery_lanes SET due_at = ${earliest} WHERE ${its} AND closed = 0 AND due_at > ${far}`)
}
