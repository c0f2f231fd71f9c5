import { type MasterKey, nameOf, type Step } from '../core/seal/master-key.ts'
import { Seal, type SealedColumn } from '../core/seal/seal.ts'
import { type Database, sql } from './database.ts'
import { reseal } from './reseal.ts'

/** What a rotation did. */
export interface Rotated {
  /** How many values are sealed under the new key. */
  values: number
  /** The file of the key before. */
  former: string
}

/**
 * The master key a database is sealed under. The database holds the key's name, which changes in the transaction in which everything is
 * sealed anew: whenever a rotation is cut off, the name says which of the two keys is the right one.
 */
export class Keyring {
  readonly seal: Seal
  readonly #database: Database
  readonly #key: MasterKey

  /** Finishes a rotation that was cut off. Throws a sentence when the key is not the one this database is sealed under. */
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
   * Makes a new key and seals these columns anew under it, all or none; `told` hears of each step once it is on disk. What was derived
   * from the former key (cursors, tokens, signed URLs) is void. Who holds `seal` holds the former: the box must be opened again.
   */
  async rotate(columns: readonly SealedColumn[], told: (step: Step) => void = () => {}): Promise<Rotated> {
    const master = this.#key.prepare()
    told('made')
    const next = new Seal(master)
    const values = await this.#database.transaction(async (tx) => {
      let count = 0
      for (const column of columns) count += await reseal(tx, column, this.seal, next)
      await tx.run(sql`UPDATE box SET master_key_name = ${nameOf(master)}`)
      return count
    })
    told('sealed')
    this.#key.adopt(told)
    return { values, former: this.#key.former }
  }
}
