import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Plan } from '../src/accounts/plan.ts'
import { iso, systemClock } from '../src/core/clock.ts'
import { Cursors } from '../src/store/page.ts'
import { newId } from '../src/core/ids.ts'
import { createLog } from '../src/core/log.ts'
import { type Caller, scopes } from '../src/core/scopes.ts'
import { masterKey, Seal } from '../src/core/seal/seal.ts'
import { EventLog } from '../src/events/log.ts'
import { Identities } from '../src/identities/identities.ts'
import { Quota } from '../src/mail/quota.ts'
import { Trash } from '../src/ops/retention/trash.ts'
import { prepare } from '../src/store/migrate.ts'
import { SqliteDatabase } from '../src/store/sqlite/database.ts'
import { StateFile } from '../src/store/state.ts'

/** The parts of a box that is not running, over its own data directory. Nothing is forced to disk until `close`. */
export interface Store {
  database: SqliteDatabase
  events: EventLog
  identities: Identities
  plan: Plan
  quota: Quota
  caller: Caller
  close(): Promise<void>
}

export const boxDomain = 'pillarbox.test'

/** Opens a data directory as the box does, and makes it when it is not there. */
export async function openStore(directory: string): Promise<Store> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const clock = systemClock
  const created_at = iso(clock.now())
  const state = await StateFile.open(join(directory, 'state.json'), () => ({
    version: 1,
    box_id: newId('acct').slice(5),
    created_at,
    database_created: true,
    first_key_shown: false,
    accounts: [{ id: newId('acct'), name: 'bench', created_at }],
  }))
  const file = join(directory, 'pillarbox.db')
  prepare(file, false)
  const database = await SqliteDatabase.open(file, createLog('error'), { sync: async () => {} })
  const seal = new Seal(masterKey(`${directory}-keys`))
  const events = new EventLog(database, clock)
  const cursors = new Cursors(seal.key('cursors'))
  const plan = new Plan({ database, clock, limits: {}, limitsOf: () => undefined })
  const quota = new Quota({ database, plan, trash: new Trash({ database, clock, time: 0 }) }, { quota: 0, operator: '' })
  const identities = new Identities({
    database,
    events,
    clock,
    cursors,
    domains: { mayUse: () => false, stillUsable: async () => true, unsendable: () => null },
    domain: boxDomain,
    account: '',
    plan,
    storageOf: quota.storageOf,
  })
  const account_id = state.data.accounts[0]!.id
  const caller = {
    account_id,
    key_id: null,
    session_id: null,
    secret: 0,
    scopes: new Set(scopes),
    identity_id: null,
    rate_limit: 0,
    until: Infinity,
    ip: '',
    user_agent: '',
  }
  return { database, events, identities, plan, quota, caller, close: () => database.close() }
}

/** Makes the identities `1<name>`, `2<name>`, … that the generator writes to; answers their ids. */
export async function seedIdentities(store: Store, name: string, count: number): Promise<string[]> {
  const made: string[] = []
  for (let first = 1; first <= count; first += 1000) {
    const last = Math.min(count, first + 999)
    const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index)
    const rows = await Promise.all(
      numbers.map((number) =>
        store.identities.create(store.caller, { name: `${number}${name}`, email_username: `${number}${name}` }),
      ),
    )
    made.push(...rows.map(({ id }) => id))
  }
  return made
}
