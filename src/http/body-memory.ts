import { FairQueue } from '../core/fair-queue.ts'
import { Fault } from '../core/fault.ts'
import { MemoryShares } from '../core/memory.ts'

/** Octets of bodies that may be in memory at once, of all callers and of one account or, without a key, one network. Two of the largest, and one. */
const most = { all: 96 * 1024 * 1024, one: 48 * 1024 * 1024 }

/** Octets from which a body is large: what is made of it takes several times as many. */
const large = 1024 * 1024

/** Large bodies that are worked on at once, of all callers; of one account or network it is one. */
const abreast = 3

/** One body's part of the room. */
export interface BodyShare {
  /** Takes room for octets that have come. Throws Fault rate_limited, code `too_much_at_once`, when there is none. */
  take(octets: number): void
  /** Everything it has taken, once it is no longer held. */
  giveBack(): void
  /** Resolves when the whole body may be worked on: a large one when it is its turn. */
  begin(): Promise<void>
  /** The work on it is over; others may begin. */
  end(): void
}

/** What the bodies of calls hold of memory, from their first octet until they are answered. Whoever trickles holds no more than has come. */
export class BodyMemory {
  readonly #octets = new MemoryShares(most)
  readonly #waiting = new FairQueue<{ holder: string; begin: () => void }>()
  readonly #working = new Set<string>()

  /** For the body of a call of this account or network. */
  share(holder: string): BodyShare {
    let taken = 0
    let working = false
    return {
      take: (octets) => {
        if (!this.#octets.take(holder, octets)) throw tooMuch()
        taken += octets
      },
      giveBack: () => {
        this.#octets.give(holder, taken)
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

  /** Lets those begin for whom there is a place. */
  #next(): void {
    while (this.#working.size < abreast) {
      const next = this.#waiting.shift((holder) => !this.#working.has(holder))
      if (!next) return
      this.#working.add(next.holder)
      next.begin()
    }
  }
}

function tooMuch(): Fault {
  return new Fault(
    'rate_limited',
    'Too many large bodies are being read at once. Send this one again when others have been answered.',
    { code: 'too_much_at_once', retryAfter: 1 },
  )
}
