import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../core/clock.ts'
import { Fault, notFound } from '../core/fault.ts'
import { networksOf, networkShares } from '../net/networks.ts'
import { accountStopped, type Caller, insufficientScope, may, noLongerAdmitted, scopes } from '../core/scopes.ts'
import { readCookie } from './cookie.ts'
import { crossSiteLink, crossSitePage, isSafe } from './csrf.ts'
import { Buckets, type RateLimitState, tooMany } from './rate.ts'
import type { AnyRoute } from './route.ts'

/** The caller of a key or a session, without the address and user agent of the call. */
type Identified = Omit<Caller, 'ip' | 'user_agent'>

/** Looks up a key or session on every call, from memory. Undefined when it is unknown, revoked or expired. */
export type Authenticate = (token: string) => Identified | undefined | Promise<Identified | undefined>

/** Calls a minute; 0 means no limit. */
export interface RateLimits {
  /** Of all keys and sessions of one account together. */
  account_rate_limit: number
  public_rate_limit: number
  document_rate_limit: number
  sign_in_rate_limit: number
}

/** The fields of a route that decide who may call it. */
export interface Admitting extends Pick<
  AnyRoute,
  'scope' | 'alsoScope' | 'rate' | 'operator' | 'own' | 'effect' | 'local' | 'whileStopped'
> {
  /** By tokens that this path alone takes, besides keys. */
  tokens?: Authenticate
}

/** The parts of a request that admission checks. */
export interface AdmissionRequest {
  method: string | undefined
  headers: IncomingHttpHeaders
  address: string
  userAgent: string
  /** Set for a call by the control socket, which only the operator can open, with the account they name, if any. */
  operator?: { account: string | undefined } | undefined
}

/** The caller, a fault if the call is refused, and the state of the rate limit. */
export interface AdmissionResult {
  caller: Caller
  fault?: Fault
  rateLimit: RateLimitState | undefined
}

interface Authenticators {
  /** By an API key. */
  authenticate: Authenticate
  /** By the session cookie of a browser. */
  session: Authenticate
  /** The origin of the box, which decides the name of the cookie. */
  origin: () => string
  /** Origins whose pages may make changes with a session; the origin of the box first. */
  origins: () => readonly string[]
  /** The account of the operator. */
  operator: string
  /** True if there is such an account. */
  exists: (accountId: string) => boolean
}
/**
 * Calls a minute from the addresses of one provider: the callbacks of all messages come from few addresses, and a refused one may not be
 * repeated. The limit only bounds the cost of refused calls of others.
 */
const callbackRate = 6000

/** Authentication, authorization and rate limits of calls. */
export class Admission {
  readonly #authenticators: Authenticators
  readonly #keys: Buckets
  readonly #sessions: Buckets
  readonly #accounts: Buckets
  readonly #addresses: Buckets
  readonly #documents: Buckets
  readonly #signIns: Buckets
  readonly #callbacks: Buckets
  #limits: RateLimits

  constructor(authenticators: Authenticators, limits: RateLimits, clock: Clock) {
    this.#authenticators = authenticators
    this.#limits = limits
    this.#keys = new Buckets('key', clock)
    this.#sessions = new Buckets('session', clock)
    this.#accounts = new Buckets('account', clock)
    this.#addresses = new Buckets('address', clock)
    this.#documents = new Buckets('document', clock)
    this.#signIns = new Buckets('sign-in', clock)
    this.#callbacks = new Buckets('callback', clock)
  }

  /** The buckets of all policies. */
  get policies(): readonly Buckets[] {
    return [this.#keys, this.#sessions, this.#accounts, this.#addresses, this.#documents, this.#signIns, this.#callbacks]
  }

  reload(limits: RateLimits): void {
    this.#limits = limits
  }

  /** `route` is undefined for an unknown path; such calls count against the rate limit too. */
  admit(request: AdmissionRequest, route: Admitting | undefined): AdmissionResult | Promise<AdmissionResult> {
    if (request.operator) return this.#admitOperator(request, request.operator.account)
    if (route?.scope === 'public') return this.#admitPublic(request, route)
    const identified = this.#identify(request, route)
    return identified instanceof Promise
      ? identified.then((found) => this.#admitIdentified(request, route, found))
      : this.#admitIdentified(request, route, identified)
  }

  #admitIdentified(request: AdmissionRequest, route: Admitting | undefined, identified: Identified | undefined): AdmissionResult {
    if (!identified) return this.#admitAnonymous(request, route && refusal(request.headers))
    // not counted against the session: another site made its browser send it
    const crossSite = identified.session_id === null ? undefined : this.#crossSite(request, route)
    if (crossSite) return this.#admitAnonymous(request, crossSite)
    const caller: Caller = { ...identified, ip: request.address, user_agent: request.userAgent }
    const stopped = stoppedFault(identified, route)
    // not counted against the account, whose people need its calls
    const rateLimit = stopped ? this.count(request.address) : this.#count(caller)
    if (rateLimit && rateLimit.retryAfter > 0) return { caller, fault: tooMany(rateLimit), rateLimit }
    if (stopped) return { caller, fault: stopped, rateLimit }
    const fault = route && refusalOf(caller, route, this.#authenticators.operator)
    return fault ? { caller, fault, rateLimit } : { caller, rateLimit }
  }

  /**
   * Checks again after a wait: throws Fault 401 when the key or session has ended since the call was admitted, 403 when its account was stopped. Does
   * not count as a call.
   */
  async requireStillValid(request: AdmissionRequest, caller: Caller, route?: Admitting): Promise<void> {
    if (caller.key_id === null && caller.session_id === null) return
    const identified = await this.#identify(request, route)
    if (!identified) throw noLongerAdmitted(caller)
    const stopped = stoppedFault(identified, route)
    if (stopped) throw stopped
  }

  /** Counts a further call that an admitted request makes within the box. */
  countFurther(request: AdmissionRequest, caller: Caller): RateLimitState | undefined {
    return request.operator ? undefined : this.#count(caller)
  }

  /** The person who is signed in, on a path that others may call too; undefined for a request with a key or without a session. */
  async signedIn(request: AdmissionRequest): Promise<Caller | undefined> {
    if (request.operator || request.headers.authorization !== undefined) return undefined
    const identified = await this.#identify(request, undefined)
    return identified && { ...identified, ip: request.address, user_agent: request.userAgent }
  }

  /** Calls by the control socket have all scopes: a process that can open it can read the whole data directory. */
  #admitOperator(request: AdmissionRequest, account = this.#authenticators.operator): AdmissionResult {
    const caller = { ...anonymous(request), ip: 'local' }
    if (!this.#authenticators.exists(account)) return { caller, fault: notFound('account'), rateLimit: undefined }
    return { caller: { ...caller, account_id: account, scopes: new Set(scopes) }, rateLimit: undefined }
  }

  /** Counts a call that was refused before it was authenticated. */
  count(address: string): RateLimitState | undefined {
    return takeFrom(this.#addresses, address, this.#limits.public_rate_limit)
  }

  /** Uses the bearer token, valid or not; the cookie only without one. */
  #identify({ headers }: AdmissionRequest, route: Admitting | undefined): ReturnType<Authenticate> {
    const { authenticate } = this.#authenticators
    if (headers.authorization !== undefined) {
      const token = bearer(headers.authorization)
      if (token === undefined) return undefined
      return route?.tokens ? byEither(token, route.tokens, authenticate) : authenticate(token)
    }
    const cookie = readCookie(headers.cookie, this.#authenticators.origin())
    return cookie === undefined ? undefined : this.#authenticators.session(cookie)
  }

  /** Returns the limit with the fewest remaining calls, or the one that is used up. */
  #count({ key_id, session_id, account_id, rate_limit, made_by }: Caller): RateLimitState | undefined {
    let rateLimit =
      session_id === null ? this.#keys.take(key_id ?? account_id, rate_limit) : this.#sessions.take(session_id, rate_limit)
    for (const maker of made_by ?? []) {
      if (isUsedUp(rateLimit)) return rateLimit
      rateLimit = lower(rateLimit, this.#keys.take(maker.key_id, maker.rate_limit))
    }
    if (isUsedUp(rateLimit)) return rateLimit
    return lower(rateLimit, this.#accounts.take(account_id, this.#limits.account_rate_limit))
  }

  /** The fault of a cross-site request. Reads are allowed from anywhere, as other sites cannot read the response. */
  #crossSite({ method, headers }: AdmissionRequest, route: Admitting | undefined): Fault | undefined {
    if (!isSafe(method)) return crossSitePage(headers, this.#authenticators.origins())
    return route?.effect ? crossSiteLink(headers, this.#authenticators.origins()) : undefined
  }

  #admitPublic(request: AdmissionRequest, route: Admitting): AdmissionResult {
    const { rate } = route
    const { address } = request
    const { document_rate_limit: documents, sign_in_rate_limit: signIns } = this.#limits
    if (rate === 'document') return anonymousResult(request, undefined, takeFrom(this.#documents, address, documents))
    if (rate === 'callback') return anonymousResult(request, undefined, takeFrom(this.#callbacks, address, callbackRate))
    // another site must not sign its users in, nor use up their attempts
    const crossSite = rate === 'sign-in' ? this.#crossSite(request, route) : undefined
    if (rate === 'sign-in' && !crossSite) return anonymousResult(request, undefined, takeFrom(this.#signIns, address, signIns))
    return this.#admitAnonymous(request, crossSite)
  }

  #admitAnonymous(request: AdmissionRequest, refused: Fault | undefined): AdmissionResult {
    return anonymousResult(request, refused, this.count(request.address))
  }
}

/** The fault of a caller who may not call this route: not the operator, not on the machine of the box, or without the scopes. */
export function refusalOf(caller: Caller, route: Admitting, operator: string): Fault | undefined {
  if (route.operator && (caller.account_id !== operator || caller.identity_id !== null)) {
    return new Fault('forbidden', "This call requires a key of the operator's account that is not bound to one identity.", {
      code: 'operator_only',
    })
  }
  if (route.local) {
    return new Fault('forbidden', 'This call is available only to commands on the machine of the box.', { code: 'local_only' })
  }
  if (route.scope === 'public' || (route.own && caller.person)) return undefined
  const missing = [[route.scope].flat(), route.alsoScope ?? []].find((any) => any.length > 0 && !may(caller, any))
  return missing && insufficientScope(missing, caller.person)
}

function stoppedFault({ stopped }: Identified, route: Admitting | undefined): Fault | undefined {
  return stopped && !route?.whileStopped ? accountStopped() : undefined
}

/** Takes one call from the bucket of each network of an address. */
function takeFrom(buckets: Buckets, address: string, perMinute: number): RateLimitState | undefined {
  let rateLimit: RateLimitState | undefined
  for (const [index, network] of networksOf(address).entries()) {
    rateLimit = lower(rateLimit, buckets.take(network, perMinute * networkShares[index]!))
    if (isUsedUp(rateLimit)) return rateLimit
  }
  return rateLimit
}

function isUsedUp(rateLimit: RateLimitState | undefined): boolean {
  return rateLimit !== undefined && rateLimit.retryAfter > 0
}

function lower(one: RateLimitState | undefined, other: RateLimitState | undefined): RateLimitState | undefined {
  if (!one || !other) return one ?? other
  return isUsedUp(other) || other.remaining < one.remaining ? other : one
}

/** The result for a caller without a key. A rate limit takes precedence over other faults. */
function anonymousResult(
  request: AdmissionRequest,
  refused: Fault | undefined,
  rateLimit: RateLimitState | undefined,
): AdmissionResult {
  const caller = anonymous(request)
  const fault = rateLimit && rateLimit.retryAfter > 0 ? tooMany(rateLimit) : refused
  return fault ? { caller, fault, rateLimit } : { caller, rateLimit }
}

async function byEither(token: string, first: Authenticate, other: Authenticate): Promise<Identified | undefined> {
  return (await first(token)) ?? other(token)
}

/** RFC 6750 2.1; the scheme's name is case-insensitive (RFC 9110 11.1). */
function bearer(authorization: string): string | undefined {
  return /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1]
}

function refusal({ authorization }: IncomingHttpHeaders): Fault {
  return authorization === undefined
    ? new Fault(
        'unauthorized',
        'An API key is required: Authorization: Bearer <key>. Without one, ask whoever runs this box; people sign in: POST /v1/session.',
        {
          code: 'missing_key',
        },
      )
    : new Fault(
        'unauthorized',
        'This API key is not valid: it is unknown, revoked or expired. Ask whoever gave it to you for another.',
        { code: 'invalid_key' },
      )
}

function anonymous(request: AdmissionRequest): Caller {
  return {
    account_id: '',
    key_id: null,
    session_id: null,
    secret: 0,
    scopes: new Set(),
    identity_id: null,
    rate_limit: 0,
    until: Infinity,
    ip: request.address,
    user_agent: request.userAgent,
  }
}
