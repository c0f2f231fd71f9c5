import { Fault } from '../core/fault.ts'

/** Octets of answers that callers of one account or, without a key, one network may leave unread before the next is made: two of the largest. */
const most = 48 * 1024 * 1024

/** What answers hold of memory until they are written to their connections. */
export class UnreadAnswers {
  readonly #held = new Map<string, number>()

  /** Throws Fault rate_limited, code `too_much_unread`, where no further answer is made for now. */
  require(holder: string): void {
    if ((this.#held.get(holder) ?? 0) <= most) return
    throw new Fault(
      'rate_limited',
      `More than ${most} octets of answers to you wait to be read. Read them, or close their connections, and send this again.`,
      { code: 'too_much_unread', retryAfter: 1 },
    )
  }

  /** Answers how to give back what an answer of so many octets takes. */
  hold(holder: string, octets: number): () => void {
    this.#held.set(holder, (this.#held.get(holder) ?? 0) + octets)
    return () => {
      const left = this.#held.get(holder)! - octets
      if (left > 0) this.#held.set(holder, left)
      else this.#held.delete(holder)
    }
  }
}
