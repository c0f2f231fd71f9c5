import { Fault } from '../core/fault.ts'

/**
 * Octets of answers that wait to be read. Of callers of one account or, without a key, one network: above it no further answer is made; two of the
 * largest. Of all: above it connections are closed.
 */
const most = { one: 48 * 1024 * 1024, all: 144 * 1024 * 1024 }

interface Unread {
  octets: number
  hangUp: () => void
}

/** What answers hold of memory until they are written to their connections. */
export class UnreadAnswers {
  readonly #held = new Map<string, { octets: number; answers: Set<Unread> }>()
  #all = 0

  /** Throws Fault rate_limited, code `too_much_unread`, where no further answer is made for now. */
  require(holder: string): void {
    if ((this.#held.get(holder)?.octets ?? 0) <= most.one) return
    throw new Fault(
      'rate_limited',
      `More than ${most.one} octets of answers to you wait to be read. Read them, or close their connections, and send this again.`,
      { code: 'too_much_unread', retryAfter: 1 },
    )
  }

  /**
   * Answers how to give back what an answer of so many octets takes. Where all take too much together, whoever has left most unread is hung up on,
   * with the oldest answer first: a refusal would be for those who read theirs.
   */
  hold(holder: string, octets: number, hangUp: () => void): () => void {
    const held = this.#held.get(holder) ?? { octets: 0, answers: new Set() }
    const unread = { octets, hangUp }
    this.#held.set(holder, held)
    held.answers.add(unread)
    held.octets += octets
    this.#all += octets
    while (this.#all > most.all) this.#hangUpOnLargest()
    return () => this.#release(holder, unread)
  }

  #release(holder: string, unread: Unread): void {
    const held = this.#held.get(holder)
    if (!held?.answers.delete(unread)) return
    held.octets -= unread.octets
    this.#all -= unread.octets
    if (held.answers.size === 0) this.#held.delete(holder)
  }

  #hangUpOnLargest(): void {
    let [largest] = this.#held
    for (const one of this.#held) if (one[1].octets > largest![1].octets) largest = one
    const [holder, { answers }] = largest!
    const [oldest] = answers
    this.#release(holder, oldest!)
    oldest!.hangUp()
  }
}
