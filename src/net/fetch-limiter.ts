import { FairQueue } from '../core/fair-queue.ts'
import { Fault } from '../core/fault.ts'
import { MemoryShares } from '../core/memory.ts'

/** Octets that were fetched and are in memory at once, of all accounts and of one. Two messages of the largest size, and one. */
const maxOctets = { all: 96 * 1024 * 1024, one: 48 * 1024 * 1024 }

/** Messages whose URLs, and pictures of text messages, that are fetched at once. */
const abreast = { all: 16, one: 4 }

/** The part of the room of one message, or one picture. */
export interface FetchShare {
  /** Does this when it is the account's turn; what the signal aborts before then is not done. */
  inTurn<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>
  /** Takes room for octets that have come. Throws Fault rate_limited, code `too_much_at_once`, when there is none. */
  take(this: void, octets: number): void
  /** Everything it has taken, once it is no longer held. */
  giveBack(): void
}

/** What messages enclose by URL, and pictures that come with text messages: fetched a few at a time, accounts in turn, and counted until they are kept. */
export class FetchLimiter {
  readonly #octets = new MemoryShares(maxOctets)
  readonly #waiting = new FairQueue<() => void>()
  readonly #working = new Map<string, number>()
  #all = 0

  share(account: string): FetchShare {
    let taken = 0
    return {
      inTurn: async (signal, work) => {
        await this.#turn(account, signal)
        try {
          return await work()
        } finally {
          this.#count(account, -1)
          this.#next()
        }
      },
      take: (octets) => {
        if (!this.#octets.take(account, octets)) throw tooMuch()
        taken += octets
      },
      giveBack: () => {
        this.#octets.release(account, taken)
        taken = 0
      },
    }
  }

  async #turn(account: string, signal: AbortSignal): Promise<void> {
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
    this.#all += more
    const count = (this.#working.get(account) ?? 0) + more
    if (count > 0) this.#working.set(account, count)
    else this.#working.delete(account)
  }

  /** Lets those begin for whom there is a place. */
  #next(): void {
    while (this.#all < abreast.all) {
      const begin = this.#waiting.shift((account) => (this.#working.get(account) ?? 0) < abreast.one)
      if (!begin) return
      begin()
    }
  }
}

function tooMuch(): Fault {
  return new Fault(
    'rate_limited',
    'Too many large files are being fetched at once. Send this one again when others have been answered.',
    { code: 'too_much_at_once', retryAfter: 1 },
  )
}
