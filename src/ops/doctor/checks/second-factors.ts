import { sql } from '../../../store/database.ts'
import { about, sharedCheck, type Check } from '../check.ts'
import type { BoxContext } from '../context.ts'

const maxLines = 50

/** Checks for people who sign in without a second factor. */
export function secondFactors({ database, state }: BoxContext): Check {
  return sharedCheck('second_factor', 'usual', async () => {
    const rows = await database.all<{ id: string; account_id: string; confirmed_at: string | null }>(
      sql`SELECT id, account_id, confirmed_at FROM logins ORDER BY account_id, seq`,
    )
    const listed = new Set(state.data.accounts.map(({ id }) => id))
    const people = rows.filter(({ account_id }) => listed.has(account_id))
    const bare = people.filter(({ confirmed_at }) => confirmed_at === null).slice(0, maxLines)
    const all = about('second_factor', 'all')
    if (people.length === 0) return [all.pass('Nobody signs in with a password.')]
    if (bare.length === 0) return [all.pass('Everyone who signs in has a second factor.')]
    return bare.map(({ id }) =>
      about('second_factor', id).warn(
        'This person signs in with only a password.',
        'Signed in as that person: POST /v1/account/totp, then POST /v1/account/totp/confirm {"code": "…"} (docs/accounts.md)',
      ),
    )
  })
}
