import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { FairQueue } from './fair-queue.ts'

/** Milliseconds of work at a time. */
const slice = 5

/** Milliseconds of pause for each of work: all of it together has a fifth of the thread. */
const pause = 4

/**
 * Work on the event loop whose cost callers choose, in pieces that each have a bound: accounts take turns, and everything else goes on in
 * between. What comes while nothing waits is done at once.
 */
export class PacedWork {
  readonly #waiting = new FairQueue<() => Promise<void>>()
  #running = false
  #spent = 0

  /** Does the work when it is the account's turn; answers (or throws) what it does. */
  run<Result>(account: string, work: () => Result | Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(account, async () => {
        try {
          resolve(await work())
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      })
      if (!this.#running) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#running = true
    for (let work = this.#waiting.shift(); work; work = this.#waiting.shift()) {
      const began = performance.now()
      await work()
      this.#spent += performance.now() - began
      if (this.#spent < slice) continue
      await sleep(this.#spent * pause, undefined, { ref: false })
      this.#spent = 0
    }
    this.#running = false
  }
}

/** Longest that work goes on before others have their turn, in milliseconds. */
const longest = 5

/** For long work on the main thread, done in small steps: says when the others should have their turn of the event loop. */
export class Turns {
  #since = performance.now()

  /** Whether it has gone on for long enough. */
  get due(): boolean {
    return performance.now() - this.#since > longest
  }

  /** Resolves when everything else that was ready has run. */
  async yield(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#since = performance.now()
  }
}
