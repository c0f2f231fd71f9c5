import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../core/log.ts'
import type { ClaimedDelivery } from './in-flight.ts'
import type { End, Result } from './queue-store.ts'

interface Deps {
  log: Log
  /** Puts ends on disk, all or none. */
  write: (ends: readonly End[]) => Promise<void>
  /** Called when a write was begun. */
  writing: () => void
  /** Called for each that is on disk. */
  written: (end: End) => void
}

interface Pending extends End {
  resolve: () => void
}

/** Sees to it that the ends of attempts come on disk: those that end together in one write, and however often the disk refuses. */
export class ResultWriter {
  readonly #deps: Deps
  #pending: Pending[] = []
  #writing = false
  #stopping = false

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Resolves when it is written down, together with what else ended while the disk was busy. */
  readonly record = (claim: ClaimedDelivery, result: Result): Promise<void> =>
    new Promise((resolve) => {
      this.#pending.push({ claim, result, resolve })
      if (!this.#writing) void this.#write()
    })

  /** What cannot be written from now on is let go: it is made again after the next start. */
  stop(): void {
    this.#stopping = true
  }

  async #write(): Promise<void> {
    this.#writing = true
    // what ends in the same turn is written together
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#pending.length > 0) {
      const ends = this.#pending.splice(0)
      try {
        const written = this.#deps.write(ends)
        this.#deps.writing()
        await written
        for (const end of ends) this.#done(end)
      } catch (error) {
        this.#deps.log.error({ err: error, ends: ends.length }, 'the end of attempts could not be written down; now one by one')
        for (const end of ends) void this.#insist(end)
      }
    }
    this.#writing = false
  }

  async #insist(end: Pending): Promise<void> {
    // what was delivered must not be delivered again because the disk was full for a while
    for (let wait = 100; ; wait = Math.min(wait * 2, 5000)) {
      try {
        await this.#deps.write([end])
        break
      } catch (error) {
        const { kind, lane } = end.claim
        this.#deps.log.error({ err: error, kind, lane }, 'the end of an attempt could not be written down')
        if (this.#stopping) return end.resolve()
        await sleep(wait, undefined, { ref: false })
      }
    }
    this.#done(end)
  }

  #done(end: Pending): void {
    this.#deps.written(end)
    end.resolve()
  }
}
