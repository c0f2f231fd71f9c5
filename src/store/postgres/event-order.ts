import { KeptConnection } from './connections.ts'
import type { PostgresTarget } from './target.ts'

/** Milliseconds without an answer after which the connection is given up. */
const timeout = 10_000

/**
 * Gives the next positions to the events that are committed, in the order in which they were inserted. Those that are committed later get later ones: under the
 * lock, each statement sees all that was committed before it, and who hides an event holds its row.
 */
const placing = `BEGIN;
  SELECT 1 FROM box FOR NO KEY UPDATE;
  SELECT 1 FROM events WHERE seq < 0 FOR UPDATE;
  WITH placed AS (UPDATE events SET seq = (SELECT coalesce(max(seq), 0) FROM events WHERE seq > 0) + unplaced.place
      FROM (SELECT seq AS number, row_number() OVER (ORDER BY seq DESC) AS place FROM events WHERE seq < 0) AS unplaced
      WHERE events.seq = unplaced.number RETURNING unplaced.number, events.seq)
    UPDATE hidden_events SET seq = placed.seq FROM placed WHERE hidden_events.seq = placed.number;
  COMMIT`

/** Gives events their positions in the log when several transactions write at once, on any box: each does it for all. */
export class EventOrder {
  readonly #connection: KeptConnection
  #running: Promise<void> = Promise.resolve()
  /** A run that has not begun. */
  #next: Promise<void> | undefined

  constructor(target: PostgresTarget) {
    // each statement sees what was committed before it
    const session = {
      default_transaction_isolation: String.raw`read\ committed`,
      idle_in_transaction_session_timeout: String(timeout),
    }
    this.#connection = new KeptConnection(target, { timeout, session })
  }

  /** Resolves when all events that are committed now have their positions, or the server did not answer: the next call, by any box, gives them. */
  place(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      // a transaction may have failed on it
      this.#running = this.#place().catch(() => void this.#connection.end())
      return this.#running
    })
    return this.#next
  }

  /** True if transactions here see what others commit meanwhile, without which events could be missed; `change` commits another value of `box.probed`. */
  readsCommitted(change: () => Promise<void>): Promise<boolean> {
    const answer = this.#running.then(() => this.#readsCommitted(change))
    this.#running = answer.then(ignore, () => void this.#connection.end())
    return answer
  }

  async close(): Promise<void> {
    await this.#next
    await this.#running
    await this.#connection.end()
  }

  async #place(): Promise<void> {
    const connection = await this.#connection.open()
    await connection.query(placing)
  }

  async #readsCommitted(change: () => Promise<void>): Promise<boolean> {
    const connection = await this.#connection.open()
    const read = async (): Promise<unknown> => {
      const { rows } = await connection.query<{ probed: number }>('SELECT probed FROM box')
      return rows[0]!.probed
    }
    await connection.query('BEGIN')
    const before = await read()
    await change()
    const after = await read()
    await connection.query('ROLLBACK')
    return before !== after
  }
}

function ignore(): void {}
