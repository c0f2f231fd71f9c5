import { type MasterKey, nameOf, type Step } from '../core/seal/master-key.ts'
import { Seal, type SealedColumn } from '../core/seal/seal.ts'
import { type Database, sql } from './database.ts'
import { reseal } from './reseal.ts'

/** The result of a rotation. */
export interface RotationResult {
  /** Number of values sealed under the new key. */
  values: number
  /** The file of the previous key. */
  former: string
}

/**
 * The master key of a database. The database stores the name of the key, which changes in the transaction that seals everything again: after an
 * interrupted rotation the name tells which of the two keys is in use.
 */
export class Keyring {
  readonly seal: Seal
  readonly #database: Database
  readonly #key: MasterKey

  /** Finishes an interrupted rotation. Throws an Error with a readable message when the key is not that of this database. */
  static async open(database: Database, key: MasterKey): Promise<Keyring> {
    const box = await database.get<{ master_key_name: string | null }>(sql`SELECT master_key_name FROM box`)
    const name = box?.master_key_name ?? null
    const master = key.settle(name)
    if (name === null) {
      await database.transaction((tx) => tx.run(sql`UPDATE box SET master_key_name = ${nameOf(master)}`))
    }
    return new Keyring(database, key, new Seal(master))
  }

  private constructor(database: Database, key: MasterKey, seal: Seal) {
    this.#database = database
    this.#key = key
    this.seal = seal
  }

  /**
   * Creates a new key and seals these columns again under it, all or none; `onStep` is called after each step is on disk. Values derived from
   * the previous key (cursors, tokens, signed URLs) become invalid. `seal` still uses the previous key: the box must be opened again.
   */
  async rotate(columns: readonly SealedColumn[], onStep: (step: Step) => void = () => {}): Promise<RotationResult> {
    const master = this.#key.prepare()
    onStep('made')
    const next = new Seal(master)
    const values = await this.#database.transaction(async (tx) => {
      let count = 0
      for (const column of columns) count += await reseal(tx, column, this.seal, next)
      await tx.run(sql`UPDATE box SET master_key_name = ${nameOf(master)}`)
      return count
    })
    onStep('sealed')
    this.#key.adopt(onStep)
    return { values, former: this.#key.former }
  }
}
