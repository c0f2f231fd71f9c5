import { Fault } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'

/** Logs when the server goes away, and when it is back: once each. */
export class Availability {
  readonly #target: string
  readonly #log: Log
  #away = false

  constructor(target: string, log: Log) {
    this.#target = target
    this.#log = log
  }

  /** Notes how a call ended; returns its error. */
  note(error?: unknown): unknown {
    const away = error instanceof Fault && error.code === 'storage_unavailable'
    if (away && !this.#away) {
      const { message } = error.cause as Error
      this.#log.error({ database: this.#target, problem: message }, 'database not available: nothing is stored until it is')
    }
    if (error === undefined && this.#away) this.#log.warn({ database: this.#target }, 'database available again')
    if (away || error === undefined) this.#away = away
    return error
  }
}
