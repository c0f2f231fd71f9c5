import { type Clock, minute } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'

/** How one caller stands with one policy, after this call. */
export interface RateLimitState {
  policy: string
  perMinute: number
  /** Whole calls left. */
  remaining: number
  /** Seconds until the full quota is there again. */
  reset: number
  /** Seconds until the next call is admitted; 0 when this one was. */
  retryAfter: number
}

interface Bucket {
  tokens: number
  /** Milliseconds since the epoch. */
  filled: number
}

/** Token buckets of one policy: each holds a minute's quota and fills evenly. Remembers the newest 100,000 callers. */
export class Buckets {
  readonly #policy: string
  readonly #clock: Clock
  readonly #size: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(policy: string, clock: Clock, size = 100_000) {
    this.#policy = policy
    this.#clock = clock
    this.#size = size
  }

  /** Takes one call from the caller's bucket; undefined when there is no limit (`perMinute` 0). */
  take(who: string, perMinute: number): RateLimitState | undefined {
    if (perMinute === 0) return undefined
    const now = this.#clock.now()
    const bucket = this.#buckets.get(who) ?? { tokens: perMinute, filled: now }
    const passed = Math.max(0, now - bucket.filled)
    bucket.tokens = Math.min(perMinute, bucket.tokens + (passed * perMinute) / minute)
    bucket.filled = now
    const admitted = bucket.tokens >= 1
    if (admitted) bucket.tokens -= 1
    this.#remember(who, bucket)
    return {
      policy: this.#policy,
      perMinute,
      remaining: Math.floor(bucket.tokens),
      reset: Math.ceil(((perMinute - bucket.tokens) * 60) / perMinute),
      retryAfter: admitted ? 0 : Math.max(1, Math.ceil(((1 - bucket.tokens) * 60) / perMinute)),
    }
  }

  /** Deleting first moves the caller to the young end, so that the map's first entry is the one longest unseen. */
  #remember(who: string, bucket: Bucket): void {
    this.#buckets.delete(who)
    this.#buckets.set(who, bucket)
    if (this.#buckets.size > this.#size) this.#buckets.delete(this.#buckets.keys().next().value!)
  }
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10). */
export function rateHeaders(standing: RateLimitState): Record<string, string> {
  return {
    'RateLimit-Policy': `"${standing.policy}";q=${standing.perMinute};w=60`,
    RateLimit: `"${standing.policy}";r=${standing.remaining};t=${standing.reset}`,
  }
}

export function tooMany(standing: RateLimitState): Fault {
  return new Fault(
    'rate_limited',
    `Too many requests: the limit is ${standing.perMinute} a minute. Try again in ${standing.retryAfter} s.`,
    { retryAfter: standing.retryAfter },
  )
}
