import { existsSync } from 'node:fs'
import type { Config } from './config.ts'
import { type Clock, iso } from './core/clock.ts'
import { newId } from './core/ids.ts'
import type { State } from './store/state.ts'

/** The state of a new box. Throws an Error with a readable message when there is a database without state.json, which names the accounts. */
export function freshState(config: Config, clock: Clock, database: string): State {
  if (existsSync(database)) {
    throw new Error(`state.json is missing, although ${database} exists. Restore it from a backup: it names the accounts.`)
  }
  const created_at = iso(clock.now())
  const account = { id: newId('acct'), name: config.account.name, created_at }
  return {
    version: 1,
    box_id: newId('acct').slice(5),
    created_at,
    database_created: false,
    first_key_shown: false,
    accounts: [account],
  }
}
