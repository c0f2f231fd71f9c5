import { sweep } from '../core/cron.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'

/** Octets of its account's room that an event takes. */
export interface Capacity {
  account_id: string
  octets: number
}

interface Deps {
  database: Database
  /** The place up to which everybody who follows the log has read it. */
  followed: () => number
  /** The ids of events that somebody still wants to read, however old they are. */
  needed: ReadonlySet<string>
  /** Events older than this go, ISO 8601. */
  before: string
  /** Called with what goes, in the transaction in which it does. */
  giveBack: (tx: Transaction, gone: readonly Capacity[]) => Promise<void>
}

/** Events removed in one transaction: it must not hold the event loop. */
const handful = 64

/**
 * Removes the oldest events of the log, up to the first that is not old enough, or that somebody who follows the log has not read. The
 * newest stays: places in the log are counted from it. Answers how many went.
 */
export async function prune({ database, followed, needed, before, giveBack }: Deps, signal?: AbortSignal): Promise<number> {
  let count = 0
  let from = 0
  await sweep(async () => {
    const rows = await database.all<Capacity & { seq: number; id: string; created_at: string }>(
      sql`SELECT seq, id, created_at, account_id, octets FROM events WHERE seq > ${from} AND seq <= ${followed()} AND seq < (SELECT max(seq) FROM events)
        ORDER BY seq LIMIT ${handful}`,
    )
    const recent = rows.findIndex(({ created_at }) => created_at >= before)
    const old = recent === -1 ? rows : rows.slice(0, recent)
    const gone = old.filter(({ id }) => !needed.has(id))
    await database.transaction(async (tx) => {
      for (const { seq } of gone) {
        await tx.run(sql`DELETE FROM hidden_events WHERE seq = ${seq}`)
        await tx.run(sql`DELETE FROM events WHERE seq = ${seq}`)
      }
      await giveBack(tx, gone)
    })
    count += gone.length
    from = old.at(-1)?.seq ?? from
    return old.length === handful
  }, signal)
  return count
}
