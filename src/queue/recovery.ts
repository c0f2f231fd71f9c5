import { join, type Run, sql, type Transaction } from '../store/database.ts'
import type { ClaimedDelivery } from './in-flight.ts'
import { earliest, type Lane, updateLanes } from './lanes.ts'

/** The condition of deliveries whose first attempt has begun and not ended. */
const cutOff = sql`first_started_at IS NOT NULL AND first_outcome IS NULL`

/** A delivery whose attempt was interrupted; `own` if this run had claimed it, and never began. */
interface Interrupted {
  kind: string
  load: unknown
  own: boolean
}

/**
 * Makes deliveries due again, under the same id, that are attempted by a run that has ended, or by this one but not in `here`: it was not told that it
 * had claimed them. Returns them.
 */
export async function recover(tx: Transaction, run: Run, here: readonly ClaimedDelivery[], now: string): Promise<Interrupted[]> {
  const others = here.length === 0 ? sql`1 = 1` : sql`seq NOT IN (${join(here.map(({ seq }) => seq))})`
  const rows = await tx.all<Lane & { seq: number; load: string; run_id: string | null }>(
    sql`UPDATE deliveries_queue SET state = 'waiting', due_at = ${now},
        first_ended_at = CASE WHEN ${cutOff} THEN ${now} ELSE first_ended_at END,
        first_outcome = CASE WHEN ${cutOff} THEN 'interrupted' ELSE first_outcome END
      WHERE state = 'running' AND (run_id = ${run.id} OR ${run.ended(sql`run_id`)}) AND ${others} RETURNING seq, kind, lane, load, run_id`,
  )
  for (const { seq, kind, lane } of rows) {
    await tx.run(
      sql`UPDATE delivery_attempts SET ended_at = ${now}, outcome = 'interrupted' WHERE delivery_seq = ${seq} AND outcome IS NULL`,
    )
    await updateLanes(tx, [{ kind, lane }], earliest(now))
  }
  return rows.map(({ kind, load, run_id }) => ({ kind, load: JSON.parse(load) as unknown, own: run_id === run.id }))
}

/** Those of the claims whose attempt has a result: another box took it for interrupted, or the server did not confirm an earlier transaction. */
export async function alreadyEnded(tx: Transaction, run: Run, claims: readonly ClaimedDelivery[]): Promise<Set<ClaimedDelivery>> {
  if (!run.shared) return new Set()
  const rows = await tx.all<{ seq: number; number: number }>(
    sql`SELECT seq, 1 AS number FROM deliveries_queue WHERE seq IN (${join(claims.map(({ seq }) => seq))}) AND first_outcome IS NOT NULL
      UNION ALL SELECT delivery_seq, number FROM delivery_attempts
      WHERE delivery_seq IN (${join(claims.map(({ seq }) => seq))}) AND outcome IS NOT NULL`,
  )
  const ended = new Set(rows.map(({ seq, number }) => `${seq} ${number}`))
  return new Set(claims.filter(({ seq, attempt }) => ended.has(`${seq} ${attempt}`)))
}
