import type { Transaction } from '../store/database.ts'
import { actingOf, type Caller } from './scopes.ts'

/** The actors that are neither a key nor a person. */
export const actors = { operator: 'operator', anonymous: 'anonymous' } as const

/** What is recorded of an action: who did what, from where, to what. Never content, and no secret. */
export interface AuditEntry {
  account_id: string
  /** The id of a key or person, `operator` or `anonymous`. */
  actor: string
  /** The OAuth client, `mcp`, `smtp`, or `socket`; null for a plain call. */
  client: string | null
  /** The network address; null on the machine of the box. */
  address: string | null
  /** Subject and past participle: `key.created`. */
  action: string
  /** The id of what it was done to. */
  target: string | null
  identity_id: string | null
  /** Names, numbers and scopes; a few hundred bytes as JSON. */
  detail: Record<string, unknown>
}

/** Records actions in the audit log. */
export interface AuditRecorder {
  /** In the transaction of what it records. */
  append(tx: Transaction, entry: AuditEntry): Promise<void>
  /** For reads and refusals, which write nothing themselves: on disk within a second; above a bound only counted. */
  collect(entry: AuditEntry): void
}

/** The fields of an entry that say who, and from where. */
export function actorOf({
  account_id,
  client,
  ip,
  ...caller
}: Pick<Caller, 'account_id' | 'key_id' | 'session_id' | 'person' | 'client' | 'ip'>): Pick<
  AuditEntry,
  'account_id' | 'actor' | 'client' | 'address'
> {
  const own = actingOf(caller)
  if (own !== null) return { account_id, actor: own, client: client ?? null, address: ip === '' ? null : ip }
  if (account_id === '') return { account_id, actor: actors.anonymous, client: null, address: ip }
  return { account_id, actor: actors.operator, client: 'socket', address: null }
}

/** The operator's account as an actor without a call: a start, a signal, a command. */
export function byOperator(
  account_id: string,
  client: string | null,
): Pick<AuditEntry, 'account_id' | 'actor' | 'client' | 'address'> {
  return { account_id, actor: actors.operator, client, address: null }
}
