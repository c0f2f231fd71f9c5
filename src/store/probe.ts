import type { Clock } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Database } from './database.ts'

/** How long a result is reused, and the timeout after which the disk counts as failing, in milliseconds. */
const timeout = 2000

/** Whether the store can be written now, and if not, whether the disk is full. */
type StoreState = 'sound' | 'full' | 'failing'

/** Tests whether the store can be written. Only one probe runs at a time, so that anonymous calls of /readyz cost nothing. */
export class WriteProbe {
  readonly #database: Database
  readonly #clock: Clock
  #running: Promise<void> | undefined
  #last: { state: StoreState; at: number } | undefined

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Returns within 2 s a result that is at most 2 s old. */
  async check(): Promise<StoreState> {
    const last = this.#last
    if (last && Math.abs(this.#clock.now() - last.at) < timeout) return last.state
    this.#running ??= this.#write()
    const timer = Promise.withResolvers<void>()
    const handle = setTimeout(timer.resolve, timeout)
    const state = await Promise.race([
      this.#running.then(() => this.#last?.state ?? 'failing'),
      timer.promise.then((): StoreState => 'failing'),
    ])
    clearTimeout(handle)
    return state
  }

  async #write(): Promise<void> {
    const state = await this.#database.probe().then(
      (): StoreState => 'sound',
      (error: unknown): StoreState => (error instanceof Fault && error.code === 'storage_full' ? 'full' : 'failing'),
    )
    this.#last = { state, at: this.#clock.now() }
    this.#running = undefined
  }
}
