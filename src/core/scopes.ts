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

/** A key and its calls a minute. */
export interface RateOf {
  key_id: string
  rate_limit: number
}

/** Who is calling: a key (or a signed-in person) of one account, perhaps bound to one identity. */
export interface Caller {
  account_id: string
  key_id: string | null
  /** The session of a signed-in person; a caller has this or a key, or is nobody. */
  session_id: string | null
  /** Which of the key's secrets admitted the call: how often it had been rotated when that one was made. 0 without a key. */
  secret: number
  scopes: ReadonlySet<Scope>
  /** For everything but this identity the caller answers 404; null means the whole account. */
  identity_id: string | null
  /** Calls a minute; 0 means no limit. */
  rate_limit: number
  /** The keys with a limit of their own that made this one, nearest first: its calls count as theirs too. */
  made_by?: readonly RateOf[]
  /**
   * When the key expires, or the secret of it that was used, in milliseconds since the epoch, and with it what the caller makes. Infinity for a key
   * that lasts, and for a person.
   */
  until: number
  ip: string
  user_agent: string
}

/** Whether the caller holds any one of these scopes. */
export function may(caller: Pick<Caller, 'scopes'>, anyOf: readonly Scope[]): boolean {
  return anyOf.some((scope) => caller.scopes.has(scope))
}

/** What something that is made in this call names as its maker: the key or the session; null on the machine of the box. */
export function makerOf({ key_id, session_id }: Pick<Caller, 'key_id' | 'session_id'>): string | null {
  return key_id ?? session_id
}

/** Throws Fault 403, code `beyond_own`, for a key or secret that ends before what it would make or change does; `why` names that. */
export function requireLasting({ until }: Pick<Caller, 'until'>, why: string, end = Infinity): void {
  if (until < end)
    throw new Fault('forbidden', `A key that expires, or the former secret of one, cannot ${why}, which lasts longer.`, {
      code: 'beyond_own',
    })
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
