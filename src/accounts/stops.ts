import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { actingOf, type Caller } from '../core/scopes.ts'
import type { Queue } from '../queue/queue.ts'
import { sql, type Transaction } from '../store/database.ts'
import type { Accounts } from './accounts.ts'
import type { Keys } from './keys.ts'
import { type Account, accountResumed, accountStopped } from './model.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'log'> {
  accounts: Pick<Accounts, 'get'>
  keys: Pick<Keys, 'origins' | 'accountChanges'>
  queue: Pick<Queue, 'wake'>
}

/** While an account is stopped its keys do nothing, and nothing leaves; mail is received, and its people do what they may. */
export class Stops {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Throws Fault 403, code `bound_key`. One that is stopped stays so. */
  async stop(caller: Caller): Promise<Account> {
    const { database, events, clock, keys, log } = this.#deps
    const { account_id } = caller
    if (caller.identity_id !== null) throw boundKey()
    const by = actingOf(caller)
    await database.transaction(async (tx) => {
      await keys.origins.requireAdmitted(tx, caller)
      const row = await tx.get<{ stopped_at: string }>(
        sql`INSERT INTO stopped_accounts (account_id, stopped_at, stopped_by) VALUES (${account_id}, ${iso(clock.now())}, ${by})
          ON CONFLICT DO NOTHING RETURNING stopped_at`,
      )
      if (!row) return
      const data = { id: account_id, by, stopped_at: row.stopped_at }
      await events.append(tx, accountStopped, { account_id, identity_id: null, data })
      await keys.accountChanges(tx, account_id)
      tx.afterCommit(() => log.warn({ account_id, by: by ?? 'operator' }, 'account stopped'))
    })
    return this.#deps.accounts.get(caller)
  }

  /** Throws Fault 403, code `session_required`, for a key. */
  async resume(caller: Caller): Promise<Account> {
    const { database, keys, log, queue } = this.#deps
    const { account_id } = caller
    if (caller.key_id !== null) throw sessionRequired()
    const by = actingOf(caller)
    await database.transaction(async (tx) => {
      await keys.origins.requireAdmitted(tx, caller)
      if (!(await this.#end(tx, account_id, by))) return
      tx.afterCommit(() => {
        log.info({ account_id, by: by ?? 'operator' }, 'account resumed')
        queue.wake()
      })
    })
    return this.#deps.accounts.get(caller)
  }

  async #end(tx: Transaction, account_id: string, by: string | null): Promise<boolean> {
    const { changes } = await tx.run(sql`DELETE FROM stopped_accounts WHERE account_id = ${account_id}`)
    if (changes === 0) return false
    const data = { id: account_id, by, stopped_at: null }
    await this.#deps.events.append(tx, accountResumed, { account_id, identity_id: null, data })
    await this.#deps.keys.accountChanges(tx, account_id)
    return true
  }
}

function boundKey(): Fault {
  return new Fault(
    'forbidden',
    'A key that is bound to one identity cannot stop its account. Ask a person of the account, or whoever runs this box.',
    { code: 'bound_key' },
  )
}

function sessionRequired(): Fault {
  return new Fault(
    'forbidden',
    'Only a signed-in owner, or whoever runs this box (pillarbox account resume), resumes an account; a key cannot, regardless of its scopes.',
    { code: 'session_required' },
  )
}
