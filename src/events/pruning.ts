import { sweep } from '../core/cron.ts'
import { type Database, join, sql, type Transaction } from '../store/database.ts'
import { type Ages, oldRows } from '../store/old-rows.ts'

/** Bytes of the quota of its account that an event takes. */
export interface EventBytes {
  account_id: string
  octets: number
}

interface Deps {
  database: Database
  /** The position up to which all followers have read the log. */
  followed: () => number
  /** The ids of events that are still to be read and must stay, however old they are. */
  needed: ReadonlySet<string>
  ages: Ages
  /** Called with the removed events, in the transaction that removes them. */
  erased: (tx: Transaction, gone: readonly (EventBytes & { id: string })[]) => Promise<void>
}

/** Events removed in one transaction, so that it does not block the event loop. */
const batchSize = 64

/**
 * Removes the oldest events of the log, up to the first that is not old enough or that a follower has not read. The newest event stays, as
 * positions are counted from it. Returns how many were removed.
 */
export async function prune({ database, followed, needed, ages, erased }: Deps, signal?: AbortSignal): Promise<number> {
  let count = 0
  let from = 0
  await sweep(async () => {
    const rows = await database.all<EventBytes & { seq: number; id: string; at: string }>(
      sql`SELECT seq, id, created_at AS at, account_id, octets FROM events WHERE seq > ${from} AND seq <= ${followed()} AND seq < (SELECT max(seq) FROM events)
        ORDER BY seq LIMIT ${batchSize}`,
    )
    const old = await oldRows(database, rows, ages, (seq) => sql`SELECT seq, created_at AS at FROM events WHERE seq > ${seq}`)
    const gone = old.filter(({ id }) => !needed.has(id))
    await database.transaction(async (tx) => {
      if (gone.length === 0) return
      const seqs = join(gone.map(({ seq }) => seq))
      await tx.run(sql`DELETE FROM hidden_events WHERE seq IN (${seqs})`)
      await tx.run(sql`DELETE FROM events WHERE seq IN (${seqs})`)
      await erased(tx, gone)
    })
    count += gone.length
    from = old.at(-1)?.seq ?? from
    return old.length === batchSize
  }, signal)
  return count
}
