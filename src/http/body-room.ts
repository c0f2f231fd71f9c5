import { Fault } from '../core/fault.ts'

/** Octets of bodies that may be in memory at once, of all callers and of one account or, without a key, one network. Four of the largest, and two. */
const most = { all: 160 * 1024 * 1024, one: 80 * 1024 * 1024 }

/** What the bodies of calls hold of memory, from their first octet until they are answered. Whoever trickles holds no more than has come. */
export class BodyRoom {
  readonly #held = new Map<string, number>()
  #all = 0

  /** Takes room for octets that have come. Throws Fault rate_limited, code `too_much_at_once`, when there is none. */
  take(holder: string, octets: number): void {
    const held = (this.#held.get(holder) ?? 0) + octets
    if (held > most.one || this.#all + octets > most.all) {
      throw new Fault(
        'rate_limited',
        'Too many large bodies are being read at once. Send this one again when others have been answered.',
        { code: 'too_much_at_once', retryAfter: 1 },
      )
    }
    this.#held.set(holder, held)
    this.#all += octets
  }

  give(holder: string, octets: number): void {
    this.#all -= octets
    const held = (this.#held.get(holder) ?? 0) - octets
    if (held > 0) this.#held.set(holder, held)
    else this.#held.delete(holder)
  }
}
