import { type Clock, iso } from '../../core/clock.ts'
import { sweep } from '../../core/cron.ts'
import { type Database, sql, type Transaction } from '../../store/database.ts'
import type { Trash } from './trash.ts'

/** Deletes a batch of the data of a deleted identity. Returns whether there may be more. */
export type Clearing = (tx: Transaction, identityId: string) => Promise<boolean>

/** The data of deleted identities: their messages are deleted as late as those in the trash. */
export class Remains {
  readonly #database: Database
  readonly #clock: Clock
  readonly #trash: Trash
  readonly #clearing: Clearing[] = []

  constructor(deps: { database: Database; clock: Clock; trash: Trash }) {
    this.#database = deps.database
    this.#clock = deps.clock
    this.#trash = deps.trash
  }

  /** Registers, before `start`, further data of an identity, in the order of deletion. */
  add(clearing: Clearing): void {
    this.#clearing.push(clearing)
  }

  /** Called in the transaction of the deletion. */
  async leave(tx: Transaction, identityId: string): Promise<void> {
    // a batch goes with the identity, and the rest soon after
    await this.#trash.forgetSome(tx, identityId)
    await tx.run(sql`INSERT INTO identity_remains (identity_id, deleted_at) VALUES (${identityId}, ${iso(this.#clock.now())})`)
  }

  /** Deletes data older than the retention. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const horizon = iso(this.#clock.now() - this.#trash.time)
    await sweep(() => this.#step(horizon), signal)
  }

  #step(horizon: string): Promise<boolean> {
    return this.#database.transaction(async (tx) => {
      const due = await tx.get<{ identity_id: string }>(
        sql`SELECT identity_id FROM identity_remains WHERE deleted_at <= ${horizon} ORDER BY deleted_at LIMIT 1`,
      )
      if (!due) return false
      for (const keeper of this.#trash.keepers) if (await keeper.clear(tx, due.identity_id)) return true
      for (const clear of this.#clearing) if (await clear(tx, due.identity_id)) return true
      await tx.run(sql`DELETE FROM identity_remains WHERE identity_id = ${due.identity_id}`)
      return true
    })
  }
}
