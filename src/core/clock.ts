/** The source of time; tests replace it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** ISO 8601 UTC with milliseconds: `2026-11-20T10:05:00.123Z`. */
export function iso(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

/** Durations in milliseconds. */
export const second = 1000
export const minute = 60 * second
export const hour = 60 * minute
export const day = 24 * hour
