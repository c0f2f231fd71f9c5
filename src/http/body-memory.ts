import { FairQueue } from '../core/fair-queue.ts'
import { Fault } from '../core/fault.ts'
import { MemoryShares } from '../core/memory.ts'

/** Bytes of request bodies in memory: of all callers (two of the largest), and of one account or, without a key, one network (one of them). */
const limits = { all: 96 * 1024 * 1024, one: 48 * 1024 * 1024 }

/** Bytes from which a body is large: parsing takes several times as much memory. */
const large = 1024 * 1024

/** Large bodies that are processed at once, of all callers; of one account or network it is one. */
const maxLarge = 3

/** The memory of one body. */
export interface BodyShare {
  /** Reserves memory for received bytes. Throws Fault rate_limited, code `too_much_at_once`, when a limit is reached. */
  take(bytes: number): void
  /** Releases all memory of the body. */
  release(): void
  /** Resolves when the complete body may be processed: a large one when it is its turn. */
  begin(): Promise<void>
  /** Ends the processing of the body, so that others may begin. */
  end(): void
}

/** Limits the memory of request bodies, from their first byte until the response. A slow client takes only what it has sent. */
export class BodyMemory {
  readonly #memory = new MemoryShares(limits)
  readonly #waiting = new FairQueue<{ holder: string; begin: () => void }>()
  readonly #working = new Set<string>()

  /** For the body of a call of this account or network. */
  share(holder: string): BodyShare {
    let taken = 0
    let working = false
    return {
      take: (bytes) => {
        if (!this.#memory.take(holder, bytes)) throw tooMuch()
        taken += bytes
      },
      release: () => {
        this.#memory.release(holder, taken)
        taken = 0
      },
      begin: async () => {
        if (taken < large) return
        await new Promise<void>((begin) => {
          this.#waiting.push(holder, { holder, begin })
          this.#next()
        })
        working = true
      },
      end: () => {
        if (!working) return
        working = false
        this.#working.delete(holder)
        this.#next()
      },
    }
  }

  /** Begins waiting bodies while slots are free. */
  #next(): void {
    while (this.#working.size < maxLarge) {
      const next = this.#waiting.shift((holder) => !this.#working.has(holder))
      if (!next) return
      this.#working.add(next.holder)
      next.begin()
    }
  }
}

function tooMuch(): Fault {
  return new Fault('rate_limited', 'Too many large bodies are being read at once. Retry when other requests have finished.', {
    code: 'too_much_at_once',
    retryAfter: 1,
  })
}
