import type { Caller } from '../core/scopes.ts'
import { join, sql } from '../store/database.ts'
import type { Sql } from '../store/database.ts'
import type { Rows } from '../store/rows.ts'
import type { IdentityFilter } from './model.ts'
import { nameKey } from './names.ts'

/** Which identities a list shows: one that a name, an address or the caller's own key leads to, or of all of the account those that are not deleted. */
export function selection(
  { account_id, identity_id }: Pick<Caller, 'account_id' | 'identity_id'>,
  { name, email, query }: Pick<IdentityFilter, 'name' | 'email' | 'query'>,
): Pick<Rows, 'where' | 'filters'> {
  const living = sql`status <> 'deleted'`
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
