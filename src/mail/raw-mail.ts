import type { Plan } from '../accounts/plan.ts'
import { sweep } from '../core/cron.ts'
import type { Trash } from '../ops/retention/trash.ts'
import { emptyBlob } from '../store/blobs.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import { leaveRoom } from './trash.ts'

interface Deps {
  database: Database
  plan: Plan
  trash: Trash
}

/** Messages in one transaction, and their octets, at most: it must not hold the event loop. */
const handful = { messages: 8, octets: 4 * 1024 * 1024 }

/** The octets of messages, which may go sooner than what was read of them. */
export class RawMail {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Lets go of the octets of what came before a time (ISO 8601), and is not waiting to be sent. */
  async sweep(before: string, signal?: AbortSignal): Promise<void> {
    await sweep(() => this.#deps.database.transaction((tx) => this.#step(tx, before)), signal)
  }

  async #step(tx: Transaction, before: string): Promise<boolean> {
    const rows = await tx.all<{ raw_id: number; size: number }>(
      sql`SELECT raw_id, size FROM emails WHERE raw_expired_at IS NULL AND received_at < ${before}
        AND status NOT IN ('scheduled', 'queued', 'sending', 'deferred') ORDER BY received_at LIMIT ${handful.messages}`,
    )
    let octets = 0
    for (const { raw_id, size } of rows) {
      if (octets > 0 && octets + size > handful.octets) return true
      await this.#drop(tx, raw_id)
      octets += size
    }
    return rows.length > 0
  }

  /** For all copies of a message, as they share its octets. */
  async #drop(tx: Transaction, rawId: number): Promise<void> {
    const { trash, plan } = this.#deps
    const now = trash.now()
    const living = await tx.all<{ identity_id: string; size: number }>(
      sql`UPDATE emails SET raw_expired_at = ${now} WHERE raw_id = ${rawId} AND raw_expired_at IS NULL RETURNING identity_id, size`,
    )
    const thrown = await tx.all<{ id: string; identity_id: string; size: number; extra_octets: number }>(
      sql`UPDATE emails_trash SET raw_expired_at = ${now} WHERE raw_id = ${rawId} AND raw_expired_at IS NULL RETURNING id, identity_id, size, extra_octets`,
    )
    for (const { identity_id, size } of [...living, ...thrown]) await leaveRoom(tx, plan, identity_id, size)
    for (const { id, extra_octets } of thrown) await trash.resize(tx, id, extra_octets)
    await emptyBlob(tx, rawId)
  }
}
