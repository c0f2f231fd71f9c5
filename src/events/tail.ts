import type { Log } from '../core/log.ts'
import { type Database, sql } from '../store/database.ts'
import type { Event } from './model.ts'

interface Deps {
  database: Database
  /** The event at a position, with its data; undefined when it is not in the log any more. */
  find: (seq: number) => Promise<Event | undefined>
  /** Called for each event, in the order of the log. */
  hear: (event: Event) => void
}

/**
 * Milliseconds between two looks for events of other boxes, and for what they have changed of what is cached: while there are events, and after none was
 * heard for some seconds.
 */
const pauses = { active: 25, quiet: 100, quietAfter: 5000 }

/** Milliseconds between two times at which events get their positions here that their box may have left without. */
const betweenPlacing = 250

const batch = 200

/** Hears the events of all boxes in the order of the log, as they get their positions (`placesEvents`). */
export class EventTail {
  readonly #deps: Deps
  /** Events of this box that are still to be heard, by id: they are not read again. */
  readonly #own = new Map<string, Event>()
  #position = 0
  #log: Log | undefined
  #reading: Promise<void> | undefined
  #again = false
  /** When events were last given their positions here, and when one was last heard or added, in milliseconds. */
  #placed = -Infinity
  #heard = -Infinity
  #timer: NodeJS.Timeout | undefined
  #stopped = true

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Begins at the end of the log. */
  async start(log: Log): Promise<void> {
    this.#log = log
    const row = await this.#deps.database.get<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM events WHERE seq > 0`)
    this.#position = row?.seq ?? 0
    this.#stopped = false
    this.#plan()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#reading
  }

  /** Resolves when the events of this box that are committed are heard; undefined when they are. */
  get work(): Promise<void> | undefined {
    return this.#own.size === 0 ? undefined : this.#reading
  }

  /** Adds an event of this box, once it is committed. */
  add(event: Event): void {
    if (this.#stopped) return
    this.#own.set(event.id, event)
    this.#heard = performance.now()
    this.#wake()
  }

  /** Events of this box are read again: their data may have been removed. */
  forget(): void {
    this.#own.clear()
  }

  #plan(): void {
    if (this.#stopped) return
    const quiet = performance.now() - this.#heard > pauses.quietAfter
    this.#timer = setTimeout(() => this.#wake(), quiet ? pauses.quiet : pauses.active)
  }

  #wake(): void {
    if (this.#stopped) return
    this.#again = true
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
      if (this.#again) this.#wake()
      else this.#plan()
    })
  }

  async #read(): Promise<void> {
    this.#again = false
    clearTimeout(this.#timer)
    const { database } = this.#deps
    const own = [...this.#own.keys()]
    try {
      for (;;) {
        const { events, unplaced } = await database.poll(this.#position, batch)
        for (const { seq, id } of events) await this.#hear(seq, id)
        if (this.#stopped || (events.length < batch && !(unplaced && (await this.#place())))) break
      }
      // those that are left were heard before they were added
      for (const id of own) this.#own.delete(id)
    } catch (error) {
      // the store logs that the server is away; the next look is as good
      if (!this.#stopped) this.#log?.debug({ err: error }, 'log of events could not be read')
    }
  }

  /** Gives positions to events that their box has left without, as when it was killed. Returns false where they may still get them from it. */
  async #place(): Promise<boolean> {
    const now = performance.now()
    if (now - this.#placed < betweenPlacing) return false
    this.#placed = now
    await this.#deps.database.placeEvents()
    return true
  }

  async #hear(seq: number, id: string): Promise<void> {
    const own = this.#own.get(id)
    const event = own ? { ...own, seq } : await this.#deps.find(seq)
    this.#own.delete(id)
    this.#position = seq
    this.#heard = performance.now()
    if (!event) return
    try {
      this.#deps.hear(event)
    } catch (error) {
      this.#log?.error({ err: error }, 'listener failed after an event')
    }
  }
}
