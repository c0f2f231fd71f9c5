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

  constructor(parts: { database: Database; clock: Clock; trash: Trash }) {
    this.#database = parts.database
    this.#clock = parts.clock
    this.#trash = parts.trash
  }

  /** Before `start`: who else has something of it, in the order in which it goes. */
  add(clearing: Clearing): void {
    this.#clearing.push(clearing)
  }

  /** In the transaction in which an identity goes. */
  async leave(tx: Transaction, identityId: string): Promise<void> {
    // it takes no room of its account's any more, and has none to make
    await this.#trash.forget(tx, identityId)
    await tx.run(sql`INSERT INTO identity_remains (identity_id, deleted_at) VALUES (${identityId}, ${iso(this.#clock.now())})`)
  }

  /** Removes what was left for long enough. */
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
