import type { Clock } from '../../src/core/clock.ts'

/** A clock that stands still until it is moved. */
export class HeldClock implements Clock {
  #now: number

  constructor(now: number = Date.UTC(2026, 10, 20, 10, 5)) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds
  }
}

/** A clock that runs, and can be put ahead by milliseconds. */
export function movable(): Clock & { ahead: number } {
  return {
    ahead: 0,
    now() {
      return Date.now() + this.ahead
    },
  }
}
