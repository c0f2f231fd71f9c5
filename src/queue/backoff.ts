import { day } from '../core/clock.ts'

const longestInput = day

/** What the far side asked for, in milliseconds: the least wait, and the longest. */
export interface RetryHint {
  asked?: number | undefined
  within?: number | undefined
}

/**
 * Milliseconds until the next attempt after `tries` of them, or undefined when there is none left. `chance` (0 to 1) picks the place within
 * the jitter; what the far side asked for is the least, up to 24 h; `within` is the longest wait.
 */
export function waitAfter(
  tries: number,
  { schedule, jitter }: { schedule: readonly number[]; jitter: number },
  chance: number,
  { asked = 0, within = Infinity }: RetryHint = {},
): number | undefined {
  const planned = schedule[tries]
  if (planned === undefined) return undefined
  const wait = Math.min(Math.round(planned * (1 + jitter * (2 * chance - 1))), within)
  return Math.max(wait, Math.min(asked, longestInput))
}

/** Milliseconds that a `Retry-After` asks for (RFC 9110 10.2.3): seconds or a date; undefined when it is neither. */
export function retryAfter(value: string | undefined, now: number): number | undefined {
  const text = value?.trim() ?? ''
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1000
  const date = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
