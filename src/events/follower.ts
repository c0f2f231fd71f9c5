import type { Log } from '../core/log.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import type { EventHeader } from './model.ts'

/**
 * Handles events in the transaction that moves the bookmark. Returns how many it handled when it did not handle all. It may have handled the
 * next one in part; it then has stored its progress and is called again.
 */
export type ReadEvents = (tx: Transaction, events: EventHeader[]) => Promise<number | void>

/** Which events a follower reads; the others are skipped without a write. */
export interface Interest {
  /** Event types; all types without it. Events of other types do not wake the follower. */
  types?: readonly string[]
  /** Selects the relevant events, outside of a transaction; all without it. */
  filter?: (events: EventHeader[]) => Promise<EventHeader[]>
}

interface Deps extends Interest {
  name: string
  database: Database
  log: Log
  /** The events of its types after a position and up to another, oldest first. */
  after: (seq: number, to: number, limit: number) => Promise<EventHeader[]>
  /** The position of the newest event; 0 without any. */
  end: () => Promise<number>
  read: ReadEvents
  /** False while another box reads for all; without it this one does. */
  leads?: (() => Promise<boolean>) | undefined
}

const batch = 200

/** The most events that one step looks through for those of its types. */
const window = 2000

/** Skipped events after which the bookmark is moved: a killed box reads as many again. */
const maxBehind = 10_000

/** The wait until it looks whether it is to read for all boxes, in milliseconds. */
const standby = 1000

/** Waits between retries of a failed handler, in milliseconds; the last one repeats. */
const retryDelays = [500, 1000, 2000, 5000, 15_000, 60_000]

/**
 * Reads every relevant event once, in order, across restarts: the bookmark is committed with what the handler writes. A failure is logged and
 * retried, event by event, until it succeeds; no event is skipped. A new name begins at the current end of the log.
 */
export class Follower {
  readonly #deps: Deps
  readonly #types: ReadonlySet<string> | undefined
  #stopped = false
  #awake = true
  /** True if all relevant events so far are read. */
  #idle = false
  #failures = 0
  /** Another box reads for all. */
  #standsBy = false
  /** The bookmark on disk; undefined when unknown. */
  #marked: number | undefined
  /** Events up to here were read or skipped. */
  #position = 0
  /** The position of the newest event that is known of. */
  #newest = 0
  /** The end of the last failed batch: up to there events are read one by one, so that those before the failing one succeed. */
  #singleUntil = 0
  /** Relevant events that were read from the log and not handled yet, and the position after them. */
  #read: { events: EventHeader[]; to: number } | undefined
  #wake: (() => void) | undefined
  /** Resolved when it is idle or stopped. */
  #settling: PromiseWithResolvers<void> | undefined
  readonly #running: Promise<void>

  constructor(deps: Deps) {
    this.#deps = deps
    this.#types = deps.types && new Set(deps.types)
    this.#running = this.#run()
  }

  /** Called for each event in commit order, once it is on disk. */
  notify({ seq, type }: Pick<EventHeader, 'seq' | 'type'>): void {
    if (this.#standsBy) return
    this.#newest = Math.max(this.#newest, seq)
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

  /** Events up to here were read or skipped; 0 when unknown. */
  get position(): number {
    return this.#marked === undefined ? 0 : Math.max(this.#marked, this.#position)
  }

  /** Resolves when all relevant events so far are read; undefined when they are. */
  get work(): Promise<void> | undefined {
    if (this.#idle || this.#stopped) return undefined
    this.#settling ??= Promise.withResolvers()
    return this.#settling.promise
  }

  /** Resolves when the current batch is on disk or rolled back. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#wake?.()
    this.#settle()
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
        if (this.#deps.leads && (await this.#standsByFor(this.#deps.leads))) continue
        while (!this.#stopped && (await this.#step())) this.#failures = 0
        if (this.#stopped || this.#awake) continue
        this.#idle = true
        this.#settle()
        await this.#sleep()
      } catch (error) {
        if (this.#stopped) return
        this.#marked = undefined
        this.#read = undefined
        const wait = retryDelays[Math.min(this.#failures, retryDelays.length - 1)]!
        this.#failures += 1
        this.#deps.log.error(
          { err: error, follower: this.#deps.name, failures: this.#failures },
          'follower of the event log failed, retrying',
        )
        await this.#sleep(wait)
      }
    }
  }

  /** Waits while another box reads for all, for a moment. Returns whether it did. */
  async #standsByFor(leads: () => Promise<boolean>): Promise<boolean> {
    const before = this.#standsBy
    this.#standsBy = !(await leads())
    if (!this.#standsBy && !before) return false
    // the other has moved it
    this.#marked = undefined
    this.#read = undefined
    this.#idle = this.#standsBy
    if (!this.#standsBy) return false
    this.#settle()
    await this.#sleep(standby)
    return true
  }

  #settle(): void {
    this.#settling?.resolve()
    this.#settling = undefined
  }

  async #step(): Promise<boolean> {
    const { filter, read } = this.#deps
    if (this.#marked === undefined) {
      this.#marked = await this.#bookmark()
      this.#newest = Math.max(this.#newest, await this.#deps.end())
    }
    const from = Math.max(this.#position, this.#marked)
    if (this.#isBehind) await this.#move(async () => from)
    const unread = this.#read ?? { events: [], to: from }
    // those behind an event that is handled in part may be handled before it
    const open = unread.events.length === 0 || (unread.events.length < batch && unread.to >= this.#singleUntil)
    const next = open ? await this.#next(unread.to, batch - unread.events.length) : undefined
    if (next === undefined && unread.events.length === 0) return false
    const { to } = next ?? unread
    const before = this.#singleUntil
    this.#singleUntil = Math.max(before, to)
    const more = next?.events ?? []
    const events = [...unread.events, ...(filter && more.length > 0 ? await filter(more) : more)]
    if (events.length === 0) this.#position = to
    else {
      let taken = 0
      await this.#move(async (tx) => {
        taken = (await read(tx, events)) ?? events.length
        if (taken === events.length) return to
        return taken === 0 ? from : events[taken - 1]!.seq
      })
      this.#read = taken === events.length ? undefined : { events: events.slice(taken), to }
    }
    this.#singleUntil = before
    return true
  }

  /** The next events of its types, and the position up to which they are all; undefined at the end of the log. */
  async #next(from: number, most: number): Promise<{ events: EventHeader[]; to: number } | undefined> {
    if (from >= this.#newest) return undefined
    const to = Math.min(this.#newest, from + window)
    const limit = from < this.#singleUntil ? 1 : most
    const events = await this.#deps.after(from, to, limit)
    return { events, to: events.length < limit ? to : events.at(-1)!.seq }
  }

  /** Moves the bookmark to the position that the work returns, in its transaction. */
  async #move(work: (tx: Transaction) => Promise<number>): Promise<void> {
    const { name, database } = this.#deps
    const before = this.#marked!
    const to = await database.transaction(async (tx) => {
      const position = await work(tx)
      const { changes } = await tx.run(sql`UPDATE bookmarks SET seq = ${position} WHERE name = ${name} AND seq = ${before}`)
      if (changes !== 1) throw new Error(`The bookmark of ${name} was moved by another process.`)
      return position
    })
    this.#marked = to
    this.#position = to
  }

  /** Saves the position, so that the next start does not read skipped events again. */
  async #catchUp(): Promise<void> {
    const position = this.#position
    if (this.#marked === undefined || position <= this.#marked) return
    try {
      await this.#move(async () => position)
    } catch (error) {
      this.#deps.log.warn({ err: error, follower: this.#deps.name }, 'bookmark of a follower could not be written')
    }
  }

  async #bookmark(): Promise<number> {
    const { name, database } = this.#deps
    const known = await database.get<{ seq: number }>(sql`SELECT seq FROM bookmarks WHERE name = ${name}`)
    if (known) return known.seq
    const made = await database.transaction((tx) =>
      tx.get<{ seq: number }>(
        sql`INSERT INTO bookmarks (name, seq) SELECT ${name}, coalesce(max(seq), 0) FROM events WHERE seq > 0 RETURNING seq`,
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
