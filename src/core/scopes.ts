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
  'holds:decide',
  'audit:read',
] as const
export type Scope = (typeof scopes)[number]

/** What each scope allows, for the documentation. */
export const whatScopesAllow =
  'What a key may do. identities: read identities, one-time passwords and their codes, logins with their passwords, agents; write: also create, change and delete them. ' +
  'messages: read e-mail and SMS; write: send, mark and delete them. emails, sms: the same for one of the two. cards: read and reveal cards; ' +
  'write: store, freeze and cancel them. account: read keys, webhooks, domains and limits; write: change them, which includes making keys. ' +
  'holds:decide: change what may leave and who may write, add accounts, release what was set aside, and decide what is held, but for what the key sent itself. ' +
  'audit: read who did what in the account; not for bound keys.'

/** What a person of an account may do. */
export const roles = ['owner', 'approver', 'reader'] as const
export type Role = (typeof roles)[number]

const reading: readonly Scope[] = scopes.filter((scope) => scope.endsWith(':read'))

/** The scopes of the sessions of people with each role. */
export const scopesOfRole: Record<Role, ReadonlySet<Scope>> = {
  owner: new Set(scopes),
  approver: new Set([...reading, 'holds:decide']),
  reader: new Set(reading),
}

/** A key and its rate limit in calls a minute. */
export interface RateOf {
  key_id: string
  rate_limit: number
}

/** The caller: a key or a session of one account, perhaps bound to one identity. */
export interface Caller {
  account_id: string
  key_id: string | null
  /** The session of a signed-in person. A caller has a key, a session, or neither (anonymous). */
  session_id: string | null
  /** Whose session it is. */
  person?: { id: string; role: Role }
  /** The number of the key's secret that was used: how often the key had been rotated when it was made. 0 without a key. */
  secret: number
  scopes: ReadonlySet<Scope>
  /** The only identity that the caller can see; null means the whole account. */
  identity_id: string | null
  /** Calls a minute; 0 means no limit. */
  rate_limit: number
  /** The keys with a limit of their own that created this one, nearest first; calls count against their limits too. */
  made_by?: readonly RateOf[]
  /**
   * The expiry of the key, or of the secret that was used, in milliseconds since the epoch. Objects the caller creates end then too. Infinity
   * for a key without expiry, and for a session.
   */
  until: number
  /** The account of the key is stopped: of the calls only those with `whileStopped` are allowed. */
  stopped?: true
  /** The client of a key, where it is known: that of an OAuth grant, or `mcp`. */
  client?: string
  ip: string
  user_agent: string
}

export function may(caller: Pick<Caller, 'scopes'>, anyOf: readonly Scope[]): boolean {
  return anyOf.some((scope) => caller.scopes.has(scope))
}

/** Who decided or did something, for the record: the person of a session, whose id stays after the session has ended; else as `makerOf`. */
export function actingOf({ person, key_id, session_id }: Pick<Caller, 'person' | 'key_id' | 'session_id'>): string | null {
  return person?.id ?? makerOf({ key_id, session_id })
}

/** The creator that a new resource names: the key or the session; null for the operator on the machine of the box. */
export function makerOf({ key_id, session_id }: Pick<Caller, 'key_id' | 'session_id'>): string | null {
  return key_id ?? session_id
}

/** Characters of a User-Agent that are stored: it can be kilobytes long. */
const longestUserAgent = 500

/** Who read a secret, as its events and the ledger of a card have it. */
export function readerOf({ key_id, ip, user_agent }: Caller): Pick<Caller, 'key_id' | 'ip' | 'user_agent'> {
  return { key_id, ip, user_agent: user_agent.slice(0, longestUserAgent) }
}

/** Throws Fault 403, code `beyond_own`, for a key or secret that expires before what it would create or change; `why` names that. */
export function requireLasting({ until }: Pick<Caller, 'until'>, why: string, end = Infinity): void {
  if (until < end)
    throw new Fault('forbidden', `A key that expires, or the former secret of a key, cannot ${why}, which lasts longer.`, {
      code: 'beyond_own',
    })
}

/** 403: the caller has none of these scopes, of which one is needed. */
export function insufficientScope(anyOf: readonly string[], person?: Caller['person']): Fault {
  const scope = anyOf.join(' or ')
  return new Fault(
    'forbidden',
    person
      ? `With the role ${person.role} you may not do this: it needs ${scope}. An owner of the account can give you another role.`
      : `This key lacks the scope ${scope}. Ask whoever gave it to you for a key that has it; GET /v1/whoami shows what this one may do.`,
    { code: 'insufficient_scope' },
  )
}

/** 403: the account is stopped, and with it its keys. */
export function accountStopped(): Fault {
  return new Fault(
    'forbidden',
    'This account was stopped: its keys may do nothing but GET /v1/whoami, and nothing is sent. Ask an owner of the account, or whoever runs this box, to resume it.',
    { code: 'account_stopped' },
  )
}

/** 401: the key or session of this caller is no longer valid. */
export function noLongerAdmitted({ session_id }: Pick<Caller, 'session_id'>): Fault {
  return session_id === null
    ? new Fault('unauthorized', 'This API key is no longer valid. Ask whoever gave it to you for another.', {
        code: 'invalid_key',
      })
    : new Fault('unauthorized', 'This session has ended. Sign in again.', { code: 'session_ended' })
}
