import { later, Undelivered } from './undelivered.ts'

/** Longest time for one attempt in milliseconds, and for one with a large message: RFC 5321 4.5.3.2.6 allows ten minutes after its end. */
export interface Patience {
  usual: number
  large: number
}

const minute = 60_000

/** Octets from which on a message is large. */
const large = 1024 * 1024

/** Octets of messages in memory at one time. */
const mostHeld = 256 * 1024 * 1024

/** Bounds attempts: each in time, and all together in the memory that their messages take. */
export class AttemptBounds {
  readonly #patience: Patience
  /** Octets of messages on their way now. */
  #held = 0

  constructor(patience: Patience = { usual: 5 * minute, large: 10 * minute }) {
    this.#patience = patience
  }

  /** Runs an attempt that ends in time; it calls `hold` before it has the message in memory, which throws when there is no room. */
  async run<Result>(
    size: number,
    signal: AbortSignal,
    work: (limited: AbortSignal, hold: () => void) => Promise<Result>,
  ): Promise<Result> {
    const time = size > large ? this.#patience.large : this.#patience.usual
    const overdue = new AbortController()
    const timer = setTimeout(() => overdue.abort(), time)
    let held = 0
    const hold = (): void => {
      if (this.#held > 0 && this.#held + size > mostHeld) {
        throw new Undelivered(
          { outcome: 'deferred', response: 'too much mail is on its way; this one waits' },
          { within: minute },
        )
      }
      held = size
      this.#held += size
    }
    try {
      return await work(AbortSignal.any([signal, overdue.signal]), hold)
    } catch (error) {
      if (overdue.signal.aborted && !signal.aborted && !(error instanceof Undelivered)) {
        throw later(`no end within ${time / 1000} s`, '4.4.2')
      }
      throw error
    } finally {
      clearTimeout(timer)
      this.#held -= held
    }
  }
}
