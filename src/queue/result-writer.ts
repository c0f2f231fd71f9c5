import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../core/log.ts'
import type { ClaimedDelivery } from './in-flight.ts'
import type { FinishedAttempt, Result } from './queue-store.ts'

/** Results written in one transaction, so that other work runs in between. */
const batchSize = 16

interface Deps {
  log: Log
  /** Writes results to disk, all or none. */
  write: (ends: readonly FinishedAttempt[]) => Promise<void>
  /** Called when a write has begun. */
  writing: () => void
  /** Called for each result that is on disk. */
  written: (end: FinishedAttempt) => void
}

interface Pending extends FinishedAttempt {
  resolve: () => void
}

/** Writes the results of attempts to disk: those that arrive together a few at a time, retried until the disk accepts them. */
export class ResultWriter {
  readonly #deps: Deps
  #pending: Pending[] = []
  #writing = false
  #stopping = false

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Resolves when the result is on disk. Those that arrive while the disk is busy are written together, in order. */
  readonly record = (claim: ClaimedDelivery, result: Result): Promise<void> =>
    new Promise((resolve) => {
      this.#pending.push({ claim, result, resolve })
      if (!this.#writing) void this.#write()
    })

  /** Results that cannot be written from now on are dropped; their attempts are repeated after the next start. */
  stop(): void {
    this.#stopping = true
  }

  async #write(): Promise<void> {
    this.#writing = true
    // results of the same turn of the event loop are written together
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#pending.length > 0) {
      const ends = this.#pending.splice(0, batchSize)
      try {
        const written = this.#deps.write(ends)
        this.#deps.writing()
        await written
      } catch (error) {
        this.#deps.log.error({ err: error, ends: ends.length }, 'results of attempts could not be stored; retrying one by one')
        for (const end of ends) void this.#retry(end)
        continue
      }
      for (const end of ends) this.#done(end)
    }
    this.#writing = false
  }

  async #retry(end: Pending): Promise<void> {
    // a delivered message must not be delivered again because the disk was full for a while
    for (let wait = 100; ; wait = Math.min(wait * 2, 5000)) {
      try {
        await this.#deps.write([end])
        break
      } catch (error) {
        const { kind, lane } = end.claim
        this.#deps.log.error({ err: error, kind, lane }, 'result of an attempt could not be stored')
        if (this.#stopping) return end.resolve()
        await sleep(wait, undefined, { ref: false })
      }
    }
    this.#done(end)
  }

  #done(end: Pending): void {
    try {
      this.#deps.written(end)
    } catch (error) {
      this.#deps.log.error({ err: error, kind: end.claim.kind }, 'the result of an attempt is stored, but could not be reported')
    }
    end.resolve()
  }
}
