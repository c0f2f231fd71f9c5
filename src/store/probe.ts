import type { Clock } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Database } from './database.ts'

/** How long one result is told again, and how long a disk may take before it counts as failing, in milliseconds. */
const timeout = 2000

/** Whether the store takes writes now, and if not, whether it is for want of room. */
export type StoreState = 'sound' | 'full' | 'failing'

/** Whether the store takes writes now. However many ask, one probe is under way at a time: asking costs nothing that a stranger could use up. */
export class WriteProbe {
  readonly #database: Database
  readonly #clock: Clock
  #flight: Promise<void> | undefined
  #kept: { state: StoreState; at: number } | undefined

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Answers within 2 s, with what was so at most 2 s ago. */
  async look(): Promise<StoreState> {
    const kept = this.#kept
    if (kept && Math.abs(this.#clock.now() - kept.at) < timeout) return kept.state
    this.#flight ??= this.#write()
    const timer = Promise.withResolvers<void>()
    const waiting = setTimeout(timer.resolve, timeout)
    const seen = await Promise.race([
      this.#flight.then(() => this.#kept?.state ?? 'failing'),
      timer.promise.then((): StoreState => 'failing'),
    ])
    clearTimeout(waiting)
    return seen
  }

  async #write(): Promise<void> {
    const state = await this.#database.probe().then(
      (): StoreState => 'sound',
      (error: unknown): StoreState => (error instanceof Fault && error.code === 'storage_full' ? 'full' : 'failing'),
    )
    this.#kept = { state, at: this.#clock.now() }
    this.#flight = undefined
  }
}
