import { join, type Run, sql, type Transaction } from '../store/database.ts'
import type { ClaimedDelivery } from './in-flight.ts'
import { earliest, type Lane, updateLanes } from './lanes.ts'

/**
 * Makes deliveries due again, under the same id, that are attempted by a run that has ended, or by this one but not in `here`: it was not told that it
 * had claimed them. Returns how many.
 */
export async function recover(tx: Transaction, run: Run, here: readonly ClaimedDelivery[], now: string): Promise<number> {
  const others = here.length === 0 ? sql`1 = 1` : sql`seq NOT IN (${join(here.map(({ seq }) => seq))})`
  const rows = await tx.all<Lane & { seq: number }>(
    sql`UPDATE deliveries_queue SET state = 'waiting', due_at = ${now}
      WHERE state = 'running' AND (run_id = ${run.id} OR ${run.ended(sql`run_id`)}) AND ${others} RETURNING seq, kind, lane`,
  )
  for (const { seq, kind, lane } of rows) {
    await tx.run(
      sql`UPDATE delivery_attempts SET ended_at = ${now}, outcome = 'interrupted' WHERE delivery_seq = ${seq} AND outcome IS NULL`,
    )
    await updateLanes(tx, [{ kind, lane }], earliest(now))
  }
  return rows.length
}

/** The numbers of those attempts whose result is stored: another box took them for interrupted, or the server did not confirm an earlier transaction. */
export async function alreadyEnded(tx: Transaction, run: Run, claims: readonly ClaimedDelivery[]): Promise<Set<number>> {
  if (!run.shared) return new Set()
  const rows = await tx.all<{ seq: number }>(
    sql`SELECT seq FROM delivery_attempts WHERE seq IN (${join(claims.map(({ attempt_seq }) => attempt_seq))}) AND outcome IS NOT NULL`,
  )
  return new Set(rows.map(({ seq }) => seq))
}
