import type { Log } from '../core/log.ts'
import { sql } from '../store/database.ts'
import type { Database, Transaction } from '../store/database.ts'
import type { Happening } from './model.ts'

/**
 * Writes what the events mean, in the transaction that moves the bookmark; answers how many it took when it did not take all. Of the
 * first that is left it may have taken a part: then it has written down how far, and is called again.
 */
export type Reading = (tx: Transaction, events: Happening[]) => Promise<number | void>

interface Needs {
  name: string
  database: Database
  log: Log
  /** The events after a place, oldest first. */
  after: (seq: number, limit: number) => Promise<Happening[]>
  read: Reading
}

const batch = 200

/** Waits between tries of a reading that fails, in milliseconds; the last one repeats. */
const patience = [500, 1000, 2000, 5000, 15_000, 60_000]

/**
 * Reads every event of the log once, in order, across restarts: the bookmark commits with what the reading writes. One that fails is
 * logged and tried again, event by event, until it succeeds; nothing is ever skipped. A new name begins at the present end of the log.
 */
export class Follower {
  readonly #needs: Needs
  #stopped = false
  #awake = true
  #failures = 0
  /** The end of the last batch that failed: up to there one event at a time, so that those before the one in trouble get through. */
  #careful = 0
  #wake: (() => void) | undefined
  readonly #running: Promise<void>

  constructor(needs: Needs) {
    this.#needs = needs
    this.#running = this.#run()
  }

  /** There is, or may be, something new. */
  wake(): void {
    this.#awake = true
    if (this.#failures === 0) this.#wake?.()
  }

  /** Resolves when the batch in hand is on disk, or given back. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#wake?.()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        this.#awake = false
        while (!this.#stopped && (await this.#step())) this.#failures = 0
        if (!this.#stopped && !this.#awake) await this.#sleep()
      } catch (error) {
        if (this.#stopped) return
        const wait = patience[Math.min(this.#failures, patience.length - 1)]!
        this.#failures += 1
        this.#needs.log.error(
          { err: error, follower: this.#needs.name, failures: this.#failures },
          'a follower of the log failed; it tries again',
        )
        await this.#sleep(wait)
      }
    }
  }

  async #step(): Promise<boolean> {
    const { name, database, after, read } = this.#needs
    const from = await this.#bookmark()
    const events = await after(from, from < this.#careful ? 1 : batch)
    if (events.length === 0) return false
    const before = this.#careful
    this.#careful = Math.max(before, events.at(-1)!.seq)
    await database.transaction(async (tx) => {
      const taken = (await read(tx, events)) ?? events.length
      const to = taken === 0 ? from : events[taken - 1]!.seq
      const { changes } = await tx.run(sql`UPDATE bookmarks SET seq = ${to} WHERE name = ${name} AND seq = ${from}`)
      if (changes !== 1) throw new Error(`The bookmark of ${name} was moved by somebody else.`)
    })
    this.#careful = before
    return true
  }

  async #bookmark(): Promise<number> {
    const { name, database } = this.#needs
    const known = await database.get<{ seq: number }>(sql`SELECT seq FROM bookmarks WHERE name = ${name}`)
    if (known) return known.seq
    const made = await database.transaction((tx) =>
      tx.get<{ seq: number }>(
        sql`INSERT INTO bookmarks (name, seq) SELECT ${name}, coalesce(max(seq), 0) FROM events RETURNING seq`,
      ),
    )
    return made!.seq
  }

  #sleep(milliseconds?: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#wake = undefined
        resolve()
      }
      const timer = milliseconds === undefined ? undefined : setTimeout(done, milliseconds)
      this.#wake = done
    })
  }
}
