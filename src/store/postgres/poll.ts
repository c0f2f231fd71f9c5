import type { Polled } from '../database.ts'
import { KeptConnection } from './connections.ts'
import type { PostgresTarget } from './target.ts'

/** Milliseconds without an answer after which the connection is given up. */
const timeout = 10_000

/** The events after a position, and one row with all that boxes have changed of what others have cached, and whether events are without a position. */
const text = `SELECT seq, id, NULL AS changes, NULL AS unplaced FROM (SELECT seq, id FROM events WHERE seq > $1 ORDER BY seq LIMIT $2) AS placed
  UNION ALL SELECT NULL, NULL, (SELECT string_agg(kind || ' ' || run_id || ' ' || mark, ',' ORDER BY kind, run_id) FROM cache_changes),
    EXISTS (SELECT 1 FROM events WHERE seq < 0) ORDER BY seq NULLS LAST`

interface PolledRow {
  seq: number | null
  id: string
  changes: string | null
  unplaced: number
}

/**
 * Looks for what other boxes did, many times a second: by one prepared statement, on a connection of its own, as one of a pool takes more processor
 * time.
 */
export class Poll {
  readonly #connection: KeptConnection

  constructor(target: PostgresTarget) {
    const session = { default_transaction_isolation: String.raw`read\ committed`, default_transaction_read_only: 'on' }
    this.#connection = new KeptConnection(target, { timeout, session })
  }

  /** Throws what the driver throws. `began` is before anything was read, `changes` what `SharedCaches.note` takes. */
  async look(after: number, limit: number): Promise<Polled & { began: number; changes: string }> {
    const connection = await this.#connection.open()
    const began = performance.now()
    try {
      const { rows } = await connection.query<PolledRow>({ name: 'poll', text, values: [after, limit] })
      const { changes, unplaced } = rows.pop()!
      return { events: rows as Polled['events'], unplaced: unplaced === 1, began, changes: changes ?? '' }
    } catch (error) {
      await this.#connection.end()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#connection.end()
  }
}
