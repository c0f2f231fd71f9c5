import { day } from '../core/clock.ts'

const maxMinDelay = day

/** Bounds of the wait requested by the remote server or the courier, in milliseconds. */
export interface RetryHint {
  minDelay?: number | undefined
  maxDelay?: number | undefined
}

/**
 * Milliseconds until the next attempt after `tries` attempts, or undefined when none is left. `random` (0 to 1) picks the value within the
 * jitter. `minDelay` counts up to 24 h; `maxDelay` shortens the planned wait, and is the wait where none is left.
 */
export function retryDelay(
  tries: number,
  { schedule, jitter }: { schedule: readonly number[]; jitter: number },
  random: number,
  { minDelay = 0, maxDelay = Infinity }: RetryHint = {},
): number | undefined {
  const planned = schedule[tries]
  // an attempt that takes no place in the schedule is not its last
  if (planned === undefined && maxDelay === Infinity) return undefined
  const wait = planned === undefined ? maxDelay : Math.min(Math.round(planned * (1 + jitter * (2 * random - 1))), maxDelay)
  return Math.max(wait, Math.min(minDelay, maxMinDelay))
}

/** The delay of a `Retry-After` in milliseconds (RFC 9110 10.2.3): seconds or a date; undefined for any other value. */
export function retryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim() ?? ''
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1000
  const date = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
