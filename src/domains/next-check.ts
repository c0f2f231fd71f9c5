import { day, hour, minute } from '../core/clock.ts'
import type { DomainRow } from './types.ts'

/** After each look that found something wanting, how long until the next; then hourly for a week, then once a day. */
const pending = [1, 1, 2, 2, 3, 5, 5, 10, 10, 15, 20, 30, 30, 45]
const hourly = 7 * 24

/** Milliseconds until a domain is looked at again, after so many looks in its state; spread, so that not all come at once. */
export function recheckDelay(status: DomainRow['status'], checks: number, unanswered: boolean): number {
  const wait = unanswered ? 5 * minute : status === 'verified' ? hour : pendingWait(checks)
  return Math.round(wait * (0.9 + Math.random() * 0.2))
}

function pendingWait(checks: number): number {
  const early = pending[checks - 1]
  if (early !== undefined) return early * minute
  return checks <= pending.length + hourly ? hour : day
}

/** When the next domain is to be looked at: a box with nothing to do asks its store nothing. */
export class NextCheck {
  // what was written down before the start is not known yet
  #soonest = -Infinity

  /** Something is to be done at this time (milliseconds), or earlier. */
  by(time: number): void {
    this.#soonest = Math.min(this.#soonest, time)
  }

  isDue(now: number): boolean {
    return this.#soonest <= now
  }

  /** Before all that is due is looked for: what is noted meanwhile stays. */
  clear(): void {
    this.#soonest = Infinity
  }
}
