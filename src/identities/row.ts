import { type Identity, type IdentityFilter, Metadata, type ReducedIdentity } from './model.ts'
import { type Clock, iso } from '../core/clock.ts'
import { invalid, notFound } from '../core/fault.ts'
import { mergePatch } from '../core/json.ts'
import type { Caller } from '../core/scopes.ts'
import { join, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import type { Rows } from '../store/rows.ts'
import { nameKey } from './names.ts'

/** A row of `identities`. */
export interface IdentityRow extends Omit<Identity, 'phone_number' | 'status' | 'metadata' | 'storage'> {
  seq: number
  account_id: string
  phone_number: string | null
  status: 'active' | 'suspended' | 'deleted'
  metadata: string
  /** Bytes of stored e-mail, and of text messages with their media. */
  stored_bytes: number
  media_bytes: number
  /** Bytes of both that are in the trash. */
  trash_bytes: number
}

/** As it is now: one that has expired is deleted, though its row says so a little later. */
export function present<Row extends Pick<IdentityRow, 'status' | 'expires_at'>>(
  row: Row | undefined,
  clock: Clock,
): Row | undefined {
  if (!row || row.expires_at === null || row.expires_at > iso(clock.now())) return row
  return { ...row, status: 'deleted' }
}

/** The condition of rows of `identities` that are neither deleted nor have expired, though their row says so a little later. */
export function isLiving(now: string): Sql {
  return sql`identities.status <> 'deleted' AND (identities.expires_at IS NULL OR identities.expires_at > ${now})`
}

/** The condition of rows of others whose identity (the column with its id) is one of those. */
export function isOfLiving(identityId: Sql, now: string): Sql {
  return sql`EXISTS (SELECT 1 FROM identities WHERE identities.id = ${identityId} AND ${isLiving(now)})`
}

/** An identity as callers see it. */
export function toIdentity(row: IdentityRow): Identity {
  const { date_of_birth, expires_at, updated_at } = row
  const { phone_number, ...fields } = reduced(row)
  const phone = phone_number === null ? {} : { phone_number }
  return {
    ...fields,
    ...phone,
    date_of_birth,
    metadata: JSON.parse(row.metadata) as Identity['metadata'],
    expires_at,
    updated_at,
  }
}

/** An identity in lists. */
export function reduced({ id, name, email, phone_number, status, created_at }: IdentityRow): ReducedIdentity {
  return { id, name, email, phone_number, status: status as Identity['status'], created_at }
}

/** Applies a merge patch to metadata (RFC 7396); returns JSON. Throws Fault invalid_request when the result is too large. */
export function merged(before: string, patch: Record<string, unknown> | undefined): string {
  if (patch === undefined) return before
  const result = mergePatch(JSON.parse(before), patch)
  const checked = Metadata.safeParse(result)
  if (!checked.success) throw invalid('metadata', `metadata ${checked.error.issues[0]!.message}.`)
  return JSON.stringify(result)
}

/**
 * The condition of a list of identities: those matching a name, an address or the caller's key, or all of the account that are not deleted.
 */
export function selection(
  { account_id, identity_id }: Pick<Caller, 'account_id' | 'identity_id'>,
  { name, email, query }: Pick<IdentityFilter, 'name' | 'email' | 'query'>,
  now: string,
): Pick<Rows, 'where' | 'filters'> {
  const living = isLiving(now)
  const exact: Sql[] = []
  if (identity_id !== null) exact.push(sql`id = ${identity_id}`)
  if (name !== undefined) exact.push(sql`name_key = ${nameKey(name)}`)
  if (email !== undefined) exact.push(sql`id = (SELECT identity_id FROM addresses WHERE address = ${email.toLowerCase()})`)
  const key = nameKey(query ?? '')
  const found =
    query === undefined
      ? []
      : [sql`(instr(name_key, ${key}) > 0 OR instr(email, ${key}) > 0 OR instr(coalesce(phone_number, ''), ${key}) > 0)`]
  const ofAccount = sql`account_id = ${account_id}`
  if (exact.length > 0) return { where: join([ofAccount, living, ...exact], ' AND '), filters: found }
  return { where: ofAccount, filters: [living, ...found] }
}

/** A phone number that is not assigned yet. */
export interface Acquired {
  number: string
  /** Assigns the number, in the transaction that creates the identity. */
  assign(tx: Transaction, identityId: string): Promise<void>
  giveBack(): Promise<void>
}

/** The source of phone numbers. */
export interface PhoneNumbers {
  acquire(accountId: string, country: string | undefined): Promise<Acquired>
}

/** Throws Fault not_found unless the account has this identity. */
export async function requireIdentity(reader: Reader, clock: Clock, accountId: string, id: string): Promise<void> {
  const row = await reader.get(
    sql`SELECT 1 FROM identities WHERE id = ${id} AND account_id = ${accountId} AND ${isLiving(iso(clock.now()))}`,
  )
  if (!row) throw notFound('identity')
}
