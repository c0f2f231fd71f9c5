import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../core/clock.ts'
import { Fault, notFound } from '../core/fault.ts'
import { networksOf, networkShares } from '../net/networks.ts'
import { type Caller, insufficientScope, may, noLongerAdmitted, scopes } from '../core/scopes.ts'
import { readCookie } from './cookie.ts'
import { foreignLink, foreignPage, isSafe } from './csrf.ts'
import { Buckets, type RateLimitState, tooMany } from './rate.ts'
import type { AnyRoute } from './route.ts'

/** Whom a key or a session stands for; where the call comes from is added here. */
export type Identified = Omit<Caller, 'ip' | 'user_agent'>

/** Asked on every call, so it should answer from memory; undefined for what is unknown, revoked or expired. */
export type Authenticate = (token: string) => Identified | undefined | Promise<Identified | undefined>

/** Calls a minute; 0 means no limit. */
export interface RateLimits {
  /** Of all keys and sessions of one account together. */
  account_rate_limit: number
  public_rate_limit: number
  document_rate_limit: number
  sign_in_rate_limit: number
}

/** What of a route decides who may call it. */
export type Admitting = Pick<AnyRoute, 'scope' | 'reads' | 'rate' | 'operator' | 'effect' | 'local'>

/** What admission looks at. */
export interface AdmissionRequest {
  method: string | undefined
  headers: IncomingHttpHeaders
  address: string
  userAgent: string
  /** It came by the box's own socket, which only its operator can open; the account they act for, when they name one. */
  operator?: { account: string | undefined } | undefined
}

/** The caller, or the fault that turns them away; either way how they stand with their rate limit. */
export interface AdmissionResult {
  caller: Caller
  fault?: Fault
  standing: RateLimitState | undefined
}

interface Authenticators {
  /** By an API key. */
  authenticate: Authenticate
  /** By what a browser keeps of its session. */
  session: Authenticate
  /** Our own origin: how the cookie is called follows from it. */
  origin: () => string
  /** Whose pages may change something with a session, ours first. */
  origins: () => readonly string[]
  /** The account whose callers may make the calls that are the operator's. */
  operator: string
  /** Whether there is such an account. */
  exists: (accountId: string) => boolean
}
/**
 * Calls a minute of one provider: all it has to say of all messages comes from few addresses, and what is refused may not come again.
 * Strangers there learn nothing by trying; the limit bounds what it costs to refuse them.
 */
const callbackRate = 6000

/** Decides who a call is from, whether they may make it, and whether they make too many. */
export class Admission {
  readonly #doors: Authenticators
  readonly #keys: Buckets
  readonly #sessions: Buckets
  readonly #accounts: Buckets
  readonly #addresses: Buckets
  readonly #documents: Buckets
  readonly #signIns: Buckets
  readonly #callbacks: Buckets
  #limits: RateLimits

  constructor(doors: Authenticators, limits: RateLimits, clock: Clock) {
    this.#doors = doors
    this.#limits = limits
    this.#keys = new Buckets('key', clock)
    this.#sessions = new Buckets('session', clock)
    this.#accounts = new Buckets('account', clock)
    this.#addresses = new Buckets('address', clock)
    this.#documents = new Buckets('document', clock)
    this.#signIns = new Buckets('sign-in', clock)
    this.#callbacks = new Buckets('callback', clock)
  }

  reload(limits: RateLimits): void {
    this.#limits = limits
  }

  /** `route` is undefined when there is none: such a call counts, so that nobody maps the box for free. */
  async admit(arrival: AdmissionRequest, route: Admitting | undefined): Promise<AdmissionResult> {
    if (arrival.operator) return this.#operator(arrival, arrival.operator.account)
    if (route?.scope === 'public') return this.#visitor(arrival, route)
    const identified = await this.#identify(arrival)
    if (!identified) return this.#stranger(arrival, route && refusal(arrival.headers))
    // not counted as the session's: whoever made its browser ask is somebody else
    const foreign = identified.session_id === null ? undefined : this.#foreign(arrival, route)
    if (foreign) return this.#stranger(arrival, foreign)
    const caller: Caller = { ...identified, ip: arrival.address, user_agent: arrival.userAgent }
    const standing = this.#count(caller)
    if (standing && standing.retryAfter > 0) return { caller, fault: tooMany(standing), standing }
    if (route?.operator && (caller.account_id !== this.#doors.operator || caller.identity_id !== null)) {
      const fault = new Fault('forbidden', "Only the box's operator may do this, with a key that is not bound to one identity.", {
        code: 'operator_only',
      })
      return { caller, fault, standing }
    }
    if (route?.local) {
      const fault = new Fault('forbidden', 'This can only be done on the machine of the box, by a command of its own.', {
        code: 'local_only',
      })
      return { caller, fault, standing }
    }
    const lacking = route && [[route.scope].flat(), route.reads ?? []].find((any) => any.length > 0 && !may(caller, any))
    return lacking ? { caller, fault: insufficientScope(lacking), standing } : { caller, standing }
  }

  /** A second look, once what took its time is over: throws Fault 401 when the key or session that was admitted has ended meanwhile. Counts nothing. */
  async requireStill(arrival: AdmissionRequest, caller: Caller): Promise<void> {
    if (caller.key_id === null && caller.session_id === null) return
    if (!(await this.#identify(arrival))) throw noLongerAdmitted(caller)
  }

  /** Whoever can open the socket can read the whole data directory: there is nothing to keep from them. */
  #operator(arrival: AdmissionRequest, account = this.#doors.operator): AdmissionResult {
    const caller = { ...nobody(arrival), ip: 'local' }
    if (!this.#doors.exists(account)) return { caller, fault: notFound('account'), standing: undefined }
    return { caller: { ...caller, account_id: account, scopes: new Set(scopes) }, standing: undefined }
  }

  /** Counts a call that was refused before anybody asked whose it is. */
  count(address: string): RateLimitState | undefined {
    return takeFrom(this.#addresses, address, this.#limits.public_rate_limit)
  }

  /** A bearer token says who it is, good or bad; only without one the cookie does. */
  async #identify({ headers }: AdmissionRequest): Promise<Identified | undefined> {
    if (headers.authorization !== undefined) {
      const token = bearer(headers.authorization)
      return token === undefined ? undefined : this.#doors.authenticate(token)
    }
    const cookie = readCookie(headers.cookie, this.#doors.origin())
    return cookie === undefined ? undefined : this.#doors.session(cookie)
  }

  /** Answers the limit that leaves the caller fewest calls, or the one that is used up. */
  #count({ key_id, session_id, account_id, rate_limit, made_by }: Caller): RateLimitState | undefined {
    let standing =
      session_id === null ? this.#keys.take(key_id ?? account_id, rate_limit) : this.#sessions.take(session_id, rate_limit)
    for (const maker of made_by ?? []) {
      if (isUsedUp(standing)) return standing
      standing = scarcer(standing, this.#keys.take(maker.key_id, maker.rate_limit))
    }
    if (isUsedUp(standing)) return standing
    return scarcer(standing, this.#accounts.take(account_id, this.#limits.account_rate_limit))
  }

  /** What only reads may be asked from anywhere: no page elsewhere is given the answer. */
  #foreign({ method, headers }: AdmissionRequest, route: Admitting | undefined): Fault | undefined {
    if (!isSafe(method)) return foreignPage(headers, this.#doors.origins())
    return route?.effect ? foreignLink(headers, this.#doors.origins()) : undefined
  }

  #visitor(arrival: AdmissionRequest, route: Admitting): AdmissionResult {
    const { rate } = route
    const { address } = arrival
    const { document_rate_limit: documents, sign_in_rate_limit: signIns } = this.#limits
    if (rate === 'document') return turnedAway(arrival, undefined, takeFrom(this.#documents, address, documents))
    if (rate === 'callback') return turnedAway(arrival, undefined, takeFrom(this.#callbacks, address, callbackRate))
    // a page must not sign its visitors in as somebody it chose, nor use up the attempts they have
    const foreign = rate === 'sign-in' ? this.#foreign(arrival, route) : undefined
    if (rate === 'sign-in' && !foreign) return turnedAway(arrival, undefined, takeFrom(this.#signIns, address, signIns))
    return this.#stranger(arrival, foreign)
  }

  #stranger(arrival: AdmissionRequest, refused: Fault | undefined): AdmissionResult {
    return turnedAway(arrival, refused, this.count(arrival.address))
  }
}

/** Takes one call from each network that an address is in. */
function takeFrom(buckets: Buckets, address: string, perMinute: number): RateLimitState | undefined {
  let standing: RateLimitState | undefined
  for (const [index, network] of networksOf(address).entries()) {
    standing = scarcer(standing, buckets.take(network, perMinute * networkShares[index]!))
    if (isUsedUp(standing)) return standing
  }
  return standing
}

function isUsedUp(standing: RateLimitState | undefined): boolean {
  return standing !== undefined && standing.retryAfter > 0
}

function scarcer(one: RateLimitState | undefined, other: RateLimitState | undefined): RateLimitState | undefined {
  if (!one || !other) return one ?? other
  return isUsedUp(other) || other.remaining < one.remaining ? other : one
}

/** Too many calls are the first thing to be told. */
function turnedAway(
  arrival: AdmissionRequest,
  refused: Fault | undefined,
  standing: RateLimitState | undefined,
): AdmissionResult {
  const caller = nobody(arrival)
  const fault = standing && standing.retryAfter > 0 ? tooMany(standing) : refused
  return fault ? { caller, fault, standing } : { caller, standing }
}

/** RFC 6750 2.1; the scheme's name is case-insensitive (RFC 9110 11.1). */
function bearer(authorization: string): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1]
}

function refusal({ authorization }: IncomingHttpHeaders): Fault {
  return authorization === undefined
    ? new Fault('unauthorized', 'An API key is needed: Authorization: Bearer <key>. Or sign in: POST /v1/session.', {
        code: 'missing_key',
      })
    : new Fault('unauthorized', 'This API key is not valid: it is unknown, revoked or expired.', { code: 'invalid_key' })
}

function nobody(arrival: AdmissionRequest): Caller {
  return {
    account_id: '',
    key_id: null,
    session_id: null,
    secret: 0,
    scopes: new Set(),
    identity_id: null,
    rate_limit: 0,
    until: Infinity,
    ip: arrival.address,
    user_agent: arrival.userAgent,
  }
}
