import { sweep } from '../core/cron.ts'
import { type Database, join, sql, type Sql } from '../store/database.ts'
import { dropOrigins, type Origins, ways } from './key-ancestry.ts'

/** Revoked keys that are deleted in one transaction. */
const batch = 500

/** Of the search for what depends on a batch, in milliseconds. */
const timeout = 10_000

/** Deletes revoked keys that nothing needs: neither a key that works nor an object is among what they created or rotated, through all generations. */
export class KeyDeletion {
  readonly #database: Database
  readonly #origins: Origins
  readonly #objects: Sql[] = []

  constructor(database: Database, origins: Origins) {
    this.#database = database
    this.#origins = origins
  }

  /** Registers, before the first call, a query of `id` and `created_by` of objects that end with keys. */
  add(objects: Sql): void {
    this.#objects.push(objects)
  }

  /** Deletes all revoked keys that nothing needs, in batches. */
  async sweep(signal?: AbortSignal): Promise<void> {
    let after = 0
    const step = async (): Promise<boolean> => {
      const rows = await this.#database.all<{ id: string; seq: number }>(
        sql`SELECT id, seq FROM api_keys WHERE revoked_at IS NOT NULL AND seq > ${after} ORDER BY seq LIMIT ${batch}`,
      )
      after = rows.at(-1)?.seq ?? after
      await this.deleteUnneeded(rows.map(({ id }) => id))
      return rows.length === batch
    }
    await sweep(step, signal)
  }

  /** Deletes those of these revoked keys that nothing needs: a batch of them. */
  async deleteUnneeded(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    // read in a thread, as thousands may descend from a key; only keys that work get descendants, so what is not needed now never will be
    const unneeded = await this.#database.slow<{ id: string }>(this.#unneeded(ids.slice(0, batch)), timeout)
    const gone = unneeded.map(({ id }) => id)
    if (gone.length === 0) return
    const these = sql`SELECT value FROM json_each(${JSON.stringify(gone)})`
    await this.#database.transaction(async (tx) => {
      await tx.run(sql`DELETE FROM api_keys WHERE id IN (${these})`)
      await tx.run(sql`DELETE FROM credential_origins WHERE origin_id IN (${these})`)
      await dropOrigins(tx, gone)
    })
  }

  /** `below`: these keys and their descendants, down to the first that work. `needed`: those that work or have objects, and the keys above them. */
  #unneeded(ids: readonly string[]): Sql {
    const given = sql`SELECT value FROM json_each(${JSON.stringify(ids)})`
    const live = this.#origins.live()
    const haveObjects = this.#objects.flatMap((objects) => [
      // an expression, as a column with an affinity does not use the index of an expression
      sql`EXISTS (SELECT 1 FROM (${objects}) AS object WHERE object.created_by = below.id || '')`,
      sql`EXISTS (SELECT 1 FROM credential_origins JOIN (${objects}) AS object ON object.id = credential_origins.id WHERE origin_id = below.id)`,
    ])
    return sql`WITH RECURSIVE below (id, revoked) AS (
      SELECT id, revoked_at IS NOT NULL FROM api_keys WHERE id IN (${given}) AND revoked_at IS NOT NULL
      UNION SELECT made.id, made.revoked_at IS NOT NULL FROM below CROSS JOIN ${ways}
        LEFT JOIN credential_origins ON way = 2 AND origin_id = below.id AND ${live}
        JOIN api_keys AS made ON made.created_by = CASE way WHEN 1 THEN below.id END OR made.id = credential_origins.id
        WHERE revoked),
      needed (id) AS (SELECT id FROM below WHERE NOT revoked OR ${join(haveObjects, ' OR ')}
      UNION SELECT maker.id FROM needed CROSS JOIN ${ways}
        LEFT JOIN api_keys AS made ON way = 1 AND made.id = needed.id
        LEFT JOIN credential_origins ON way = 2 AND credential_origins.id = needed.id AND ${live}
        JOIN api_keys AS maker ON maker.id = coalesce(made.created_by, origin_id) WHERE maker.revoked_at IS NOT NULL)
      SELECT id FROM below WHERE revoked AND id IN (${given}) AND id NOT IN (SELECT id FROM needed)`
  }
}
