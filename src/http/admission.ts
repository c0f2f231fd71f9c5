import type { Clock } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { neighbourhood } from '../core/networks.ts'
import { may } from '../core/scopes.ts'
import type { Caller } from '../core/scopes.ts'
import { Buckets, tooMany } from './rate.ts'
import type { Standing } from './rate.ts'
import type { AnyRoute } from './route.ts'

/** Whom a key stands for; where the call comes from is added here. */
export type Identified = Omit<Caller, 'ip' | 'user_agent'>

/** Asked on every call, so it should answer from memory; undefined for a key that is unknown, revoked or expired. */
export type Authenticate = (token: string) => Identified | undefined | Promise<Identified | undefined>

/** Calls a minute; 0 means no limit. */
export interface RateLimits {
  public_rate_limit: number
  document_rate_limit: number
}

/** What admission looks at. */
export interface Arrival {
  authorization: string | undefined
  address: string
  userAgent: string
}

/** The caller, or the fault that turns them away; either way how they stand with their rate limit. */
export interface Verdict {
  caller: Caller
  fault?: Fault
  standing: Standing | undefined
}

/**
 * Calls a minute of one provider: all it has to say of all messages comes from few addresses, and what is refused may not come again.
 * Strangers there learn nothing by trying; the limit bounds what it costs to refuse them.
 */
const callbackRate = 6000

/** Decides who a call is from, whether they may make it, and whether they make too many. */
export class Admission {
  readonly #authenticate: Authenticate
  readonly #keys: Buckets
  readonly #addresses: Buckets
  readonly #documents: Buckets
  readonly #callbacks: Buckets
  #limits: RateLimits

  constructor(authenticate: Authenticate, limits: RateLimits, clock: Clock) {
    this.#authenticate = authenticate
    this.#limits = limits
    this.#keys = new Buckets('key', clock)
    this.#addresses = new Buckets('address', clock)
    this.#documents = new Buckets('document', clock)
    this.#callbacks = new Buckets('callback', clock)
  }

  reload(limits: RateLimits): void {
    this.#limits = limits
  }

  /** `route` is undefined when there is none: such a call counts, so that nobody maps the box for free. */
  async admit(arrival: Arrival, route: Pick<AnyRoute, 'scope' | 'rate'> | undefined): Promise<Verdict> {
    if (route?.scope === 'public') return this.#stranger(arrival, undefined, route.rate)
    const token = bearer(arrival.authorization)
    // A later way in (a signed-in person's cookie) is asked for here, when there is no bearer token.
    const identified = token === undefined ? undefined : await this.#authenticate(token)
    if (!identified) return this.#stranger(arrival, route && refusal(arrival.authorization))
    const caller: Caller = { ...identified, ip: arrival.address, user_agent: arrival.userAgent }
    const standing = this.#keys.take(caller.key_id ?? caller.account_id, caller.rate_limit)
    if (standing && standing.retryAfter > 0) return { caller, fault: tooMany(standing), standing }
    const needed = route ? [route.scope].flat() : []
    if (!route || may(caller, needed)) return { caller, standing }
    const fault = new Fault('forbidden', `This key lacks the scope ${needed.join(' or ')}.`, {
      code: 'insufficient_scope',
    })
    return { caller, fault, standing }
  }

  /** Counts a call that was refused before anybody asked whose it is. */
  count(address: string): Standing | undefined {
    return this.#addresses.take(neighbourhood(address), this.#limits.public_rate_limit)
  }

  #stranger(arrival: Arrival, refused: Fault | undefined, rate: AnyRoute['rate'] = 'address'): Verdict {
    const caller = nobody(arrival)
    const standing = this.#countAs(rate, arrival.address)
    const fault = standing && standing.retryAfter > 0 ? tooMany(standing) : refused
    return fault ? { caller, fault, standing } : { caller, standing }
  }

  #countAs(rate: NonNullable<AnyRoute['rate']>, address: string): Standing | undefined {
    if (rate === 'document') return this.#documents.take(neighbourhood(address), this.#limits.document_rate_limit)
    if (rate === 'callback') return this.#callbacks.take(neighbourhood(address), callbackRate)
    return this.count(address)
  }
}

/** RFC 6750 2.1; the scheme's name is case-insensitive (RFC 9110 11.1). */
function bearer(authorization: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? '')?.[1]
}

function refusal(authorization: string | undefined): Fault {
  return authorization === undefined
    ? new Fault('unauthorized', 'An API key is needed: Authorization: Bearer <key>.', { code: 'missing_key' })
    : new Fault('unauthorized', 'This API key is not valid: it is unknown, revoked or expired.', { code: 'invalid_key' })
}

function nobody(arrival: Arrival): Caller {
  return {
    account_id: '',
    key_id: null,
    scopes: new Set(),
    identity_id: null,
    rate_limit: 0,
    ip: arrival.address,
    user_agent: arrival.userAgent,
  }
}
