import { Fault } from '../core/fault.ts'
import type { Caller, Scope } from '../core/scopes.ts'
import type { ApiKey } from './model.ts'

/** The limits of a key that a caller creates. `usualRate` is the default rate; null means the rate of the settings. */
export interface Bounds extends Pick<ApiKey, 'rate_limit' | 'expires_at'> {
  usualRate: number | null
}

/** Throws unless a new key stays within its creator's own limits: no more calls (0 is no limit), no longer lifetime. */
export function requireWithin(bounds: Bounds, wanted: Pick<ApiKey, 'rate_limit' | 'expires_at'>): void {
  const { rate_limit: most, expires_at: end } = bounds
  if (most !== 0 && (wanted.rate_limit === 0 || wanted.rate_limit > most)) throw beyond('rate_limit', `is limited to ${most}`)
  if (end !== null && (wanted.expires_at === null || wanted.expires_at > end)) throw beyond('expires_at', `expires at ${end}`)
}

function beyond(param: string, why: string): Fault {
  return new Fault('forbidden', `A key cannot grant more than it has; this key ${why}.`, { code: 'beyond_own', param })
}

/** Throws Fault 403 when the caller lacks one of these scopes. */
export function requireScopes(caller: Caller, wanted: Scope[]): void {
  const missing = wanted.filter((scope) => !holds(caller, scope))
  if (missing.length === 0) return
  throw new Fault('forbidden', `A key can grant only scopes it has; this key lacks ${missing.join(', ')}.`, {
    code: 'missing_scope',
    param: 'scopes',
  })
}

function holds(caller: Caller, scope: Scope): boolean {
  const wider = scope.replace(/^(?:emails|sms):/, 'messages:') as Scope
  return caller.scopes.has(scope) || caller.scopes.has(wider)
}

/** Returns the session of a signed-in person. Throws Fault 403, code `session_required`, for a key; `why` says what requires a session. */
export function requireSession({ session_id }: Pick<Caller, 'session_id'>, why: string): string {
  if (session_id !== null) return session_id
  throw new Fault('forbidden', `${why} Sign in (POST /v1/session), and send the session cookie instead of a key.`, {
    code: 'session_required',
  })
}
