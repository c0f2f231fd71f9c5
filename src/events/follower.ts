import type { Log } from '../core/log.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import type { EventHeader } from './model.ts'

/**
 * Writes what the events mean, in the transaction that moves the bookmark; answers how many it took when it did not take all. Of the
 * first that is left it may have taken a part: then it has written down how far, and is called again.
 */
export type ReadEvents = (tx: Transaction, events: EventHeader[]) => Promise<number | void>

/** What a follower reads; what it does not is passed over without a write. */
export interface Interest {
  /** Of these types; without it of all. Events of others do not even wake it. */
  types?: readonly string[]
  /** Of events of these types those that matter to it, as far as is known outside a transaction; without it all. */
  concerns?: (events: EventHeader[]) => Promise<EventHeader[]>
}

interface Deps extends Interest {
  name: string
  database: Database
  log: Log
  /** The events of its types after a place, oldest first. */
  after: (seq: number, limit: number) => Promise<EventHeader[]>
  read: ReadEvents
}

const batch = 200

/** Events passed over before the bookmark follows: those that a killed box looks at once more. */
const maxBehind = 10_000

/** Waits between tries of a reading that fails, in milliseconds; the last one repeats. */
const timeout = [500, 1000, 2000, 5000, 15_000, 60_000]

/**
 * Reads every event of interest once, in order, across restarts: the bookmark commits with what the reading writes. One that fails is
 * logged and tried again, event by event, until it succeeds; nothing is ever skipped. A new name begins at the present end of the log.
 */
export class Follower {
  readonly #deps: Deps
  readonly #types: ReadonlySet<string> | undefined
  #stopped = false
  #awake = true
  /** Whether all of interest that was told up to now is read. */
  #idle = false
  #failures = 0
  /** The bookmark as it is on disk; undefined when that is not known. */
  #marked: number | undefined
  /** Up to here everything was read or passed over. */
  #position = 0
  /** The end of the last batch that failed: up to there one event at a time, so that those before the one in trouble get through. */
  #careful = 0
  #wake: (() => void) | undefined
  readonly #running: Promise<void>

  constructor(deps: Deps) {
    this.#deps = deps
    this.#types = deps.types && new Set(deps.types)
    this.#running = this.#run()
  }

  /** This event is on disk, and so are those before it, which were told before. */
  hear({ seq, type }: Pick<EventHeader, 'seq' | 'type'>): void {
    if (this.#types?.has(type) === false) {
      if (!this.#idle) return
      this.#position = Math.max(this.#position, seq)
      if (!this.#isBehind) return
    }
    this.#idle = false
    this.#awake = true
    if (this.#failures === 0) this.#wake?.()
  }

  get name(): string {
    return this.#deps.name
  }

  /** Up to here everything was read or passed over; 0 when that is not known. */
  get place(): number {
    return this.#marked === undefined ? 0 : Math.max(this.#marked, this.#position)
  }

  /** Resolves when the batch in hand is on disk, or given back. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#wake?.()
    await this.#running
    await this.#catchUp()
  }

  get #isBehind(): boolean {
    return this.#marked !== undefined && this.#position - this.#marked >= maxBehind
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        this.#awake = false
        while (!this.#stopped && (await this.#step())) this.#failures = 0
        if (this.#stopped || this.#awake) continue
        this.#idle = true
        await this.#sleep()
      } catch (error) {
        if (this.#stopped) return
        this.#marked = undefined
        const wait = timeout[Math.min(this.#failures, timeout.length - 1)]!
        this.#failures += 1
        this.#deps.log.error(
          { err: error, follower: this.#deps.name, failures: this.#failures },
          'a follower of the log failed; it tries again',
        )
        await this.#sleep(wait)
      }
    }
  }

  async #step(): Promise<boolean> {
    const { after, concerns, read } = this.#deps
    this.#marked ??= await this.#bookmark()
    const from = Math.max(this.#position, this.#marked)
    if (this.#isBehind) await this.#move(async () => from)
    const events = await after(from, from < this.#careful ? 1 : batch)
    if (events.length === 0) return false
    const last = events.at(-1)!.seq
    const before = this.#careful
    this.#careful = Math.max(before, last)
    const wanted = concerns ? await concerns(events) : events
    if (wanted.length === 0) this.#position = last
    else {
      await this.#move(async (tx) => {
        const taken = (await read(tx, wanted)) ?? wanted.length
        if (taken === wanted.length) return last
        return taken === 0 ? from : wanted[taken - 1]!.seq
      })
    }
    this.#careful = before
    return true
  }

  /** Moves the bookmark to where the work got, in its transaction. */
  async #move(work: (tx: Transaction) => Promise<number>): Promise<void> {
    const { name, database } = this.#deps
    const before = this.#marked!
    const to = await database.transaction(async (tx) => {
      const place = await work(tx)
      const { changes } = await tx.run(sql`UPDATE bookmarks SET seq = ${place} WHERE name = ${name} AND seq = ${before}`)
      if (changes !== 1) throw new Error(`The bookmark of ${name} was moved by somebody else.`)
      return place
    })
    this.#marked = to
    this.#position = to
  }

  /** So that the next start need not look again at what was passed over. */
  async #catchUp(): Promise<void> {
    const place = this.#position
    if (this.#marked === undefined || place <= this.#marked) return
    try {
      await this.#move(async () => place)
    } catch (error) {
      this.#deps.log.warn({ err: error, follower: this.#deps.name }, 'the bookmark of a follower stays behind')
    }
  }

  async #bookmark(): Promise<number> {
    const { name, database } = this.#deps
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
