import type { Plan } from '../accounts/plan.ts'
import { sweep } from '../core/cron.ts'
import type { Trash } from '../ops/retention/trash.ts'
import { emptyBlob } from '../store/blobs.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import { releaseStorage } from './trash.ts'

interface Deps {
  database: Database
  plan: Plan
  trash: Trash
}

/** The maximum number of messages and bytes in one transaction, so that it does not block the event loop. */
const batch = { messages: 8, bytes: 4 * 1024 * 1024 }

/**
 * Deletes the raw messages received before a time (ISO 8601), except those waiting to be sent. Their retention may be shorter than that of their
 * parsed content.
 */
export async function sweepRawMail(deps: Deps, before: string, signal?: AbortSignal): Promise<void> {
  await sweep(() => deps.database.transaction((tx) => deleteSome(tx, deps, before)), signal)
}

async function deleteSome(tx: Transaction, deps: Deps, before: string): Promise<boolean> {
  const rows = await tx.all<{ raw_id: number; size: number }>(
    sql`SELECT raw_id, size FROM emails WHERE raw_expired_at IS NULL AND received_at < ${before}
      AND status NOT IN ('scheduled', 'queued', 'sending', 'deferred') ORDER BY received_at LIMIT ${batch.messages}`,
  )
  let bytes = 0
  for (const { raw_id, size } of rows) {
    if (bytes > 0 && bytes + size > batch.bytes) return true
    await deleteRaw(tx, deps, raw_id)
    bytes += size
  }
  return rows.length > 0
}

/** Deletes the raw message for all copies, which share it. */
async function deleteRaw(tx: Transaction, { trash, plan }: Deps, rawId: number): Promise<void> {
  const now = trash.now()
  const kept = await tx.all<{ identity_id: string; size: number }>(
    sql`UPDATE emails SET raw_expired_at = ${now} WHERE raw_id = ${rawId} AND raw_expired_at IS NULL RETURNING identity_id, size`,
  )
  const trashed = await tx.all<{ id: string; identity_id: string; size: number; extra_octets: number }>(
    sql`UPDATE emails_trash SET raw_expired_at = ${now} WHERE raw_id = ${rawId} AND raw_expired_at IS NULL RETURNING id, identity_id, size, extra_octets`,
  )
  for (const { identity_id, size } of [...kept, ...trashed]) await releaseStorage(tx, plan, identity_id, size)
  for (const { id, extra_octets } of trashed) await trash.resize(tx, id, extra_octets)
  await emptyBlob(tx, rawId)
}
