import { type Clock, minute } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { lruMap } from '../core/memory.ts'

/** The state of a rate limit of one caller after this call. */
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

/** Calls that were admitted, of one caller. */
interface Uses {
  used: number
  perMinute: number
}

/** Token buckets of one policy: each holds a minute's quota and fills evenly. Keeps the buckets of the latest 100,000 callers. */
export class Buckets {
  readonly policy: string
  /** Since `takeUses` was last called, by caller; undefined where nobody asks. */
  #uses: Map<string, Uses> | undefined
  readonly #clock: Clock
  readonly #buckets: ReturnType<typeof lruMap<Bucket>>

  constructor(policy: string, clock: Clock, size = 100_000) {
    this.policy = policy
    this.#clock = clock
    this.#buckets = lruMap(size)
  }

  /** Takes one call from the caller's bucket; undefined when there is no limit (`perMinute` 0). */
  take(caller: string, perMinute: number): RateLimitState | undefined {
    if (perMinute === 0) return undefined
    const bucket = this.#filled(caller, perMinute)
    const admitted = bucket.tokens >= 1
    if (admitted) {
      bucket.tokens -= 1
      this.#note(caller, { used: 1, perMinute })
    }
    return {
      policy: this.policy,
      perMinute,
      remaining: Math.max(0, Math.floor(bucket.tokens)),
      reset: Math.ceil(((perMinute - bucket.tokens) * 60) / perMinute),
      retryAfter: admitted ? 0 : Math.max(1, Math.ceil(((1 - bucket.tokens) * 60) / perMinute)),
    }
  }

  /** Counts the calls that are admitted for `takeUses`. */
  noteUses(): void {
    this.#uses ??= new Map()
  }

  /** The calls that were admitted since it was last called, by caller. */
  takeUses(): ReadonlyMap<string, Uses> {
    const uses = this.#uses ?? new Map<string, Uses>()
    this.#uses = new Map()
    return uses
  }

  /** Has `takeUses` return these again. */
  returnUses(uses: ReadonlyMap<string, Uses>): void {
    for (const [caller, use] of uses) this.#note(caller, use)
  }

  /** Takes calls that another box has admitted; at most a minute's quota is owed. */
  spend(caller: string, used: number, perMinute: number): void {
    const bucket = this.#filled(caller, perMinute)
    bucket.tokens = Math.max(-perMinute, bucket.tokens - used)
  }

  #filled(caller: string, perMinute: number): Bucket {
    const now = this.#clock.now()
    let bucket = this.#buckets.get(caller)
    if (!bucket) this.#buckets.set(caller, (bucket = { tokens: perMinute, filled: now }))
    const passed = Math.max(0, now - bucket.filled)
    bucket.tokens = Math.min(perMinute, bucket.tokens + (passed * perMinute) / minute)
    bucket.filled = now
    return bucket
  }

  #note(caller: string, { used, perMinute }: Uses): void {
    if (!this.#uses) return
    this.#uses.set(caller, { used: (this.#uses.get(caller)?.used ?? 0) + used, perMinute })
  }
}

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10). */
export function rateLimitHeaders(state: RateLimitState): Record<string, string> {
  return {
    'RateLimit-Policy': `"${state.policy}";q=${state.perMinute};w=60`,
    RateLimit: `"${state.policy}";r=${state.remaining};t=${state.reset}`,
  }
}

export function tooMany(state: RateLimitState): Fault {
  return new Fault(
    'rate_limited',
    `Too many requests: the limit is ${state.perMinute} a minute. Try again in ${state.retryAfter} s.`,
    { retryAfter: state.retryAfter },
  )
}
