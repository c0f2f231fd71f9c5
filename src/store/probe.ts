import type { Clock } from '../core/clock.ts'
import type { Database } from './database.ts'

/** How long one result is told again, and how long a disk may take before it counts as failing, in milliseconds. */
const patience = 2000

/** Whether the store takes writes now. However many ask, one probe is under way at a time: asking costs nothing that a stranger could use up. */
export class Probe {
  readonly #database: Database
  readonly #clock: Clock
  #flight: Promise<void> | undefined
  #kept: { sound: boolean; at: number } | undefined

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Answers within 2 s, with what was so at most 2 s ago. */
  async sound(): Promise<boolean> {
    const kept = this.#kept
    if (kept && Math.abs(this.#clock.now() - kept.at) < patience) return kept.sound
    this.#flight ??= this.#look()
    const timer = Promise.withResolvers<void>()
    const waiting = setTimeout(timer.resolve, patience)
    const seen = await Promise.race([this.#flight.then(() => this.#kept?.sound ?? false), timer.promise.then(() => false)])
    clearTimeout(waiting)
    return seen
  }

  async #look(): Promise<void> {
    const sound = await this.#database.probe().then(
      () => true,
      () => false,
    )
    this.#kept = { sound, at: this.#clock.now() }
    this.#flight = undefined
  }
}
