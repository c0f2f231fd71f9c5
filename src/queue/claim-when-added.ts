import { join, type Run, sql, type Transaction } from '../store/database.ts'
import { type ClaimedDelivery, healthLevels, type Health, type InFlight } from './in-flight.ts'
import { batches } from './lanes.ts'
import type { NewDelivery } from './queue-store.ts'

/** Deliveries of one kind and account that are due now. */
interface DueDeliveries {
  kind: string
  account_id: string
  deliveries: readonly Pick<NewDelivery, 'id' | 'lane' | 'load'>[]
}

/**
 * Adds deliveries to idle lanes as claimed, one for each lane, as far as there is capacity; their first attempts begin with them: where most succeed, nothing of
 * the schedule is written. Returns the claims, and the deliveries that are still to be added as waiting.
 */
export async function claimWhenAdded(
  tx: Transaction,
  run: Run,
  inFlight: InFlight,
  { kind, account_id, deliveries }: DueDeliveries,
  now: string,
): Promise<{ claims: ClaimedDelivery[]; waiting: NewDelivery[] }> {
  const left = new Map(healthLevels.map((health) => [health, inFlight.claimableToAccount(kind, account_id, health)]))
  let inAll = inFlight.claimable(kind)
  const claims: ClaimedDelivery[] = []
  const waiting: NewDelivery[] = []
  const taken = new Set<string>()
  for (const some of batches(deliveries)) {
    const idle = await idleLanes(tx, { kind, account_id, deliveries: some })
    for (const delivery of some) {
      const health = taken.has(delivery.lane) ? undefined : idle.get(delivery.lane)
      if (health === undefined || Math.min(inAll, left.get(health)!) === 0) {
        waiting.push({ ...delivery, kind, account_id })
        continue
      }
      taken.add(delivery.lane)
      left.set(health, left.get(health)! - 1)
      inAll -= 1
      claims.push({ ...delivery, kind, account_id, attempt: 1, tries: 1, attempt_seq: 0, created_at: now, health, seq: 0 })
    }
  }
  await addRunning(tx, run, claims)
  return { claims, waiting }
}

/** The health of those lanes that are open and have no delivery waiting or running. */
async function idleLanes(tx: Transaction, { kind, account_id, deliveries }: DueDeliveries): Promise<Map<string, Health>> {
  // a lane has no due time while nothing waits, and while as much runs as may
  const rows = await tx.all<{ lane: string; sound: Health }>(
    sql`SELECT lane, sound FROM delivery_lanes WHERE kind = ${kind} AND account_id = ${account_id} AND closed = 0 AND due_at IS NULL
      AND lane IN (${join(deliveries.map(({ lane }) => lane))})
      AND NOT EXISTS (SELECT 1 FROM deliveries_queue AS d WHERE d.kind = ${kind} AND d.lane = delivery_lanes.lane AND d.state = 'running')
      AND NOT EXISTS (SELECT 1 FROM stopped_accounts WHERE stopped_accounts.account_id = ${account_id})`,
  )
  return new Map(rows.map(({ lane, sound }) => [lane, sound]))
}

/** Adds claimed deliveries with their first attempts, and sets `seq` of the claims. */
async function addRunning(tx: Transaction, run: Run, claims: readonly ClaimedDelivery[]): Promise<void> {
  for (const some of batches(claims)) {
    const rows = some.map(
      ({ id, kind, lane, account_id, load, created_at: now }) =>
        sql`(${id}, ${kind}, ${lane}, ${account_id}, ${JSON.stringify(load)}, ${now}, ${now}, 'running', ${run.id}, 1, 1, ${now})`,
    )
    const added = await tx.all<{ seq: number; id: string }>(
      sql`INSERT INTO deliveries_queue
        (id, kind, lane, account_id, load, due_at, created_at, state, run_id, attempts, tries, first_started_at)
        VALUES ${join(rows)} RETURNING seq, id`,
    )
    const seqs = new Map(added.map(({ seq, id }) => [id, seq]))
    for (const claim of some) claim.seq = seqs.get(claim.id)!
  }
}
