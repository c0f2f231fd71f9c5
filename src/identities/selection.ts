import { empty, sql } from '../store/database.ts'
import type { Sql } from '../store/database.ts'
import type { IdentityFilter } from './model.ts'
import { nameKey } from './names.ts'

/** The further conditions of a list, each beginning with AND. */
export function selection({ name, email, query }: Pick<IdentityFilter, 'name' | 'email' | 'query'>): Sql {
  const named = name === undefined ? empty : sql` AND name_key = ${nameKey(name)}`
  const addressed =
    email === undefined ? empty : sql` AND id = (SELECT identity_id FROM addresses WHERE address = ${email.toLowerCase()})`
  const key = nameKey(query ?? '')
  const found =
    query === undefined
      ? empty
      : sql` AND (instr(name_key, ${key}) > 0 OR instr(email, ${key}) > 0 OR instr(coalesce(phone_number, ''), ${key}) > 0)`
  return sql`${named}${addressed}${found}`
}
