import { FairQueue } from '../core/fair-queue.ts'
import { Fault } from '../core/fault.ts'
import { MemoryShares } from '../core/memory.ts'

/** Fetched bytes in memory at once, of all accounts and of one: two messages of the largest size, and one. */
const maxBytes = { all: 96 * 1024 * 1024, one: 48 * 1024 * 1024 }

/** Concurrent fetches, of all accounts and of one. One fetch is the URLs of a message, or a picture of a text message. */
const maxConcurrent = { all: 16, one: 4 }

/** The share of one message or picture. */
export interface FetchShare {
  /** Runs the work when it is the account's turn, unless the signal aborts before. */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>
  /** Reserves memory for received bytes. Throws Fault rate_limited, code `too_much_at_once`, at the limit. */
  reserve(this: void, bytes: number): void
  /** Releases all memory of this share. */
  release(): void
}

/** Limits fetches of attachments by URL and of pictures of text messages: a few at a time, accounts in turn. Their bytes count until they are stored. */
export class FetchLimiter {
  readonly #memory = new MemoryShares(maxBytes)
  readonly #waiting = new FairQueue<() => void>()
  readonly #running = new Map<string, number>()
  #total = 0

  share(account: string): FetchShare {
    let taken = 0
    return {
      run: async (signal, work) => {
        await this.#waitForTurn(account, signal)
        try {
          return await work()
        } finally {
          this.#count(account, -1)
          this.#next()
        }
      },
      reserve: (bytes) => {
        if (!this.#memory.take(account, bytes)) throw tooMuch()
        taken += bytes
      },
      release: () => {
        this.#memory.release(account, taken)
        taken = 0
      },
    }
  }

  async #waitForTurn(account: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const begin = (): void => {
      signal.removeEventListener('abort', leave)
      this.#count(account, 1)
      resolve()
    }
    const leave = (): void => {
      if (this.#waiting.remove(account, begin)) reject(signal.reason as Error)
    }
    signal.addEventListener('abort', leave, { once: true })
    this.#waiting.push(account, begin)
    this.#next()
    await promise
  }

  #count(account: string, more: number): void {
    this.#total += more
    const count = (this.#running.get(account) ?? 0) + more
    if (count > 0) this.#running.set(account, count)
    else this.#running.delete(account)
  }

  /** Starts waiting fetches within the limits. */
  #next(): void {
    while (this.#total < maxConcurrent.all) {
      const begin = this.#waiting.shift((account) => (this.#running.get(account) ?? 0) < maxConcurrent.one)
      if (!begin) return
      begin()
    }
  }
}

function tooMuch(): Fault {
  return new Fault('rate_limited', 'Too many large files are being fetched at once. Retry when other requests have finished.', {
    code: 'too_much_at_once',
    retryAfter: 1,
  })
}
