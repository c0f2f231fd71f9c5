import { type Clock, iso } from '../core/clock.ts'
import { notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { picked } from '../core/shapes.ts'
import { isOfLiving } from '../identities/row.ts'
import { type Reader, sql } from '../store/database.ts'
import { LoginNoted } from './model.ts'

/** A login as it is stored, without what is sealed. */
export interface LoginRow extends Omit<LoginNoted, 'has_password' | 'has_api_key' | 'has_notes'> {
  seq: number
  account_id: string
  place: string
  username_slot: number
  secrets_slot: number
  has_password: number
  has_api_key: number
  has_notes: number
  octets: number
}

/** All columns; `totp_id` is null once that one-time password was deleted. */
export const columns = sql`stored_logins.*,
  (SELECT totp_entries.id FROM totp_entries WHERE totp_entries.id = stored_logins.totp_id) AS totp_id`

/** The row of a login that the caller may see; throws Fault not_found, also when its identity is deleted. */
export async function rowOf(reader: Reader, clock: Clock, caller: Caller, id: string): Promise<LoginRow> {
  const row = await livingRow(reader, clock, id)
  const isOwn = row?.account_id === caller.account_id
  if (!isOwn || (caller.identity_id !== null && row.identity_id !== caller.identity_id)) throw notFound('login')
  return row
}

/** The row of a login whose identity is not deleted. */
export function livingRow(reader: Reader, clock: Clock, id: string): Promise<LoginRow | undefined> {
  return reader.get<LoginRow>(
    sql`SELECT ${columns} FROM stored_logins WHERE id = ${id} AND ${isOfLiving(sql`identity_id`, iso(clock.now()))}`,
  )
}

export function noted(row: LoginRow): LoginNoted {
  const { has_password, has_api_key, has_notes } = row
  return picked(LoginNoted, {
    ...row,
    has_password: has_password === 1,
    has_api_key: has_api_key === 1,
    has_notes: has_notes === 1,
  })
}

/** With its port, if that is not the usual one; null without a URL. */
export function hostOf(url: string | null): string | null {
  return url === null ? null : new URL(url).host
}
