import { Fault } from '../fault.ts'
import type { Caller } from '../scopes.ts'

/** The most concurrent waits of one key or session, and of one account. */
const maxOfKey = 500
const maxOfAccount = 1000

/** The fields of a call that a wait needs. */
export interface WaitingCall {
  signal: AbortSignal
  /** Resolves at the turn of its account. */
  turn: () => Promise<void>
}

/** Limits how many calls of a key and of an account wait for something at the same time. */
export class ConcurrentWaits {
  readonly #what: string
  readonly #instead: string
  readonly #running = new Map<string, number>()

  /** `what` the calls wait for, and what a caller can do besides trying again later. */
  constructor(what: string, instead: string) {
    this.#what = what
    this.#instead = instead
  }

  /** Counts a call until the returned function is called. Throws Fault rate_limited, code `too_many_waits`. */
  enter(caller: Caller): () => void {
    const bounds = [
      { whose: caller.account_id, most: maxOfAccount, of: 'account' },
      { whose: holderOf(caller), most: maxOfKey, of: caller.key_id === null ? 'session' : 'key' },
    ]
    for (const { whose, most, of } of bounds) {
      if ((this.#running.get(whose) ?? 0) < most) continue
      throw new Fault(
        'rate_limited',
        `${most} calls of this ${of} are already waiting for ${this.#what}, which is the limit. Try again when one has ended, or ${this.#instead}.`,
        { code: 'too_many_waits', retryAfter: 1 },
      )
    }
    const count = (by: 1 | -1): void => {
      for (const { whose } of bounds) {
        const now = (this.#running.get(whose) ?? 0) + by
        if (now === 0) this.#running.delete(whose)
        else this.#running.set(whose, now)
      }
    }
    count(1)
    return () => count(-1)
  }
}

/** The key or session whose limit of waits counts. */
export function holderOf({ key_id, session_id }: Caller): string {
  return String(key_id ?? session_id)
}
