import { day, hour, minute } from '../core/clock.ts'
import type { DomainRow } from './types.ts'

/** Minutes until the next check after each unsuccessful one; then hourly for a week, then daily. */
const pending = [1, 1, 2, 2, 3, 5, 5, 10, 10, 15, 20, 30, 30, 45]
const hourly = 7 * 24

/** No check is planned further ahead than this, in milliseconds, but by a clock that was: such a check is due. */
export const longestWait = 2 * day

/** Milliseconds until the next check of a domain after this many checks in its status, with jitter. */
export function recheckDelay(status: DomainRow['status'], checks: number, unanswered: boolean): number {
  const wait = unanswered ? 5 * minute : status === 'verified' ? hour : pendingWait(checks)
  return Math.round(wait * (0.9 + Math.random() * 0.2))
}

function pendingWait(checks: number): number {
  const early = pending[checks - 1]
  if (early !== undefined) return early * minute
  return checks <= pending.length + hourly ? hour : day
}

/** The time of the next due check, so that an idle box does not query the database. */
export class NextCheck {
  // due times from before the start are not known yet; Infinity when there is none
  #soonest = -Infinity

  /** A check is due at this time (milliseconds), or earlier. */
  by(time: number): void {
    this.#soonest = Math.min(this.#soonest, time)
  }

  isDue(now: number): boolean {
    return this.#soonest <= now || (this.#soonest > now + longestWait && this.#soonest !== Infinity)
  }

  /** Called before due checks are queried: times noted meanwhile are kept. */
  clear(): void {
    this.#soonest = Infinity
  }
}
