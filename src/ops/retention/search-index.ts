import { type Clock, day } from '../../core/clock.ts'
import { sweep } from '../../core/cron.ts'
import { type Database, raw, type Reader, sql } from '../../store/database.ts'

/** The pages of `emails_search_data` that say which rows of a segment are deleted: FTS5 gives them ids of 2^53 and more. */
export const tombstones = 'id >= 9007199254740992'

/** Pages of 4 KiB that one step writes, so that it does not block the event loop. */
const stepPages = 16

/** The index is rewritten for at most this share of the time, but at least once a day. */
const share = 1 / 100

/**
 * The words of deleted e-mails in the search index. FTS5 only notes which rows are deleted; their words go when the segment that contains
 * them is merged into another (sqlite.org/fts5.html, 4.4.3 and 6.8).
 */
export class SearchIndex {
  readonly #database: Database
  readonly #clock: Clock
  #next = 0

  constructor(parts: { database: Database; clock: Clock }) {
    this.#database = parts.database
    this.#clock = parts.clock
  }

  /** Rewrites, in small steps, the segments that contain words of e-mails deleted before the call. */
  async sweep(signal?: AbortSignal): Promise<void> {
    // PostgreSQL deletes the words with their row
    if (this.#database.engine !== 'sqlite' || this.#clock.now() < this.#next) return
    const due = new Set(await segmentsWithDeleted(this.#database))
    if (due.size === 0) return
    // merges need two segments, not four: a segment of new mail beside the others would hold them up
    await this.#database.transaction((tx) => tx.run(sql`INSERT INTO emails_search (emails_search, rank) VALUES ('usermerge', 2)`))
    let took = 0
    let begins = true
    await sweep(async () => {
      const began = performance.now()
      const { merged, rest } = await this.#step(begins)
      took += performance.now() - began
      if (begins && !merged) return false
      // what arrived meanwhile may hold up the merge: it begins again with all segments
      begins = !merged
      return rest.some((segment) => due.has(segment))
    }, signal)
    this.#next = this.#clock.now() + Math.min(day, took / share)
  }

  /** A negative number of pages begins to merge all segments, a positive one continues. */
  #step(begins: boolean): Promise<{ merged: boolean; rest: number[] }> {
    return this.#database.transaction(async (tx) => {
      const before = await totalChanges(tx)
      await tx.run(sql`INSERT INTO emails_search (emails_search, rank) VALUES ('merge', ${begins ? -stepPages : stepPages})`)
      // one change is that of the command
      return { merged: (await totalChanges(tx)) - before > 1, rest: await segmentsWithDeleted(tx) }
    })
  }
}

/** The segments that contain words of deleted rows. */
async function segmentsWithDeleted(reader: Reader): Promise<number[]> {
  const rows = await reader.all<{ segment: number }>(
    sql`SELECT DISTINCT (id >> 37) - 65536 AS segment FROM emails_search_data WHERE ${raw(tombstones)}`,
  )
  return rows.map(({ segment }) => segment)
}

async function totalChanges(reader: Reader): Promise<number> {
  return (await reader.get<{ n: number }>(sql`SELECT total_changes() AS n`))!.n
}
