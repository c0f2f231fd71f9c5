import { AsyncLocalStorage } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { FairQueue } from './fair-queue.ts'

/** Milliseconds of work at a time. */
const slice = 5

/** Milliseconds of pause for each millisecond of work: all of it together takes a fifth of the thread. */
const pause = 4

/**
 * Runs work whose cost callers choose on the event loop, in pieces of bounded length. Accounts take turns, and other work runs in between.
 * Work that arrives while nothing waits runs at once.
 */
export class PacedWork {
  readonly #waiting = new FairQueue<() => Promise<void>>()
  #running = false
  #spent = 0

  /** Runs the work when it is the account's turn, and returns its result. */
  run<Result>(account: string, work: () => Result | Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const run = async (): Promise<void> => {
        try {
          resolve(await work())
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      }
      // the loop is of the first caller, and what the store writes with a change belongs to the call that made it
      this.#waiting.push(account, AsyncLocalStorage.bind(run))
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

let separate = Promise.resolve()

/** Resolves in a turn of the event loop in which no other caller of this begins: for work of a few milliseconds that many may request at once. */
export function separateTurn(): Promise<void> {
  separate = separate.then(() => setImmediate())
  return separate
}

/** Milliseconds of work before it yields to the event loop. */
const longest = 5

/** For long work on the main thread that is done in small steps: yields to the event loop every few milliseconds. */
export class Turns {
  #since = performance.now()

  /** True if it is time to yield. */
  get due(): boolean {
    return performance.now() - this.#since > longest
  }

  /** Resolves when everything else that was ready has run. */
  async yield(): Promise<void> {
    await setImmediate()
    this.#since = performance.now()
  }
}
