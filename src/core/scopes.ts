import { Fault } from './fault.ts'

/** Every scope a key can hold; the `emails:*` and `sms:*` ones are narrower than `messages:*`. */
export const scopes = [
  'identities:read',
  'identities:write',
  'messages:read',
  'messages:write',
  'emails:read',
  'emails:write',
  'sms:read',
  'sms:write',
  'cards:read',
  'cards:write',
  'account:read',
  'account:write',
] as const
export type Scope = (typeof scopes)[number]

/** Who is calling: a key (or a signed-in person) of one account, perhaps bound to one identity. */
export interface Caller {
  account_id: string
  key_id: string | null
  /** The session of a signed-in person; a caller has this or a key, or is nobody. */
  session_id: string | null
  scopes: ReadonlySet<Scope>
  /** For everything but this identity the caller answers 404; null means the whole account. */
  identity_id: string | null
  /** Calls a minute; 0 means no limit. */
  rate_limit: number
  ip: string
  user_agent: string
}

/** Whether the caller holds any one of these scopes. */
export function may(caller: Pick<Caller, 'scopes'>, anyOf: readonly Scope[]): boolean {
  return anyOf.some((scope) => caller.scopes.has(scope))
}

/** 403: the caller holds none of the scopes any one of which is needed. */
export function insufficientScope(anyOf: readonly string[]): Fault {
  return new Fault('forbidden', `This key lacks the scope ${anyOf.join(' or ')}.`, { code: 'insufficient_scope' })
}

/** 401: the key or session that admitted this caller is no longer good. */
export function noLongerAdmitted({ session_id }: Pick<Caller, 'session_id'>): Fault {
  return session_id === null
    ? new Fault('unauthorized', 'This API key is no longer valid.', { code: 'invalid_key' })
    : new Fault('unauthorized', 'This session has ended. Sign in again.', { code: 'session_ended' })
}
