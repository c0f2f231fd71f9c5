import { type MasterKey, nameOf, type Step } from '../core/seal/master-key.ts'
import { Seal, type SealedColumn } from '../core/seal/seal.ts'
import { type Database, empty, join, raw, sql, type Transaction, type Value } from './database.ts'

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
      const { changes } = await database.transaction((tx) =>
        tx.run(sql`UPDATE box SET master_key_name = ${nameOf(master)} WHERE master_key_name IS NULL`),
      )
      // another box that was opened at the same time may have another key
      if (changes === 0) return Keyring.open(database, key)
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
      await tx.run(sql`UPDATE box SET master_key_name = ${nameOf(master)}, rewrite_due = 1`)
      return count
    })
    onStep('sealed')
    this.#key.adopt(onStep)
    return { values, former: this.#key.former }
  }
}

const batch = 200

/** Opens every value of a sealed column and seals it under another key. Returns how many; throws when one cannot be opened. */
async function reseal(tx: Transaction, declared: SealedColumn, from: Seal, to: Seal): Promise<number> {
  const { table, base64 } = declared
  const column = raw(declared.column)
  let count = 0
  for (let after: Value[] | undefined; ;) {
    const rows = await read(tx, declared, after)
    for (const row of rows) {
      const place = declared.key.map((_name, index) => row[`key_${index}`] as Value)
      const kept = row.value_of_it
      const context = declared.context(row)
      const plain = opened(from, typeof kept === 'string' ? Buffer.from(kept, 'base64') : kept, context, declared, place)
      const anew = to.seal(plain, context)
      const its = join(
        declared.key.map((name, index) => sql`${raw(name)} = ${place[index]}`),
        ' AND ',
      )
      await tx.run(sql`UPDATE ${raw(table)} SET ${column} = ${base64 ? anew.toString('base64') : anew} WHERE ${its}`)
      count += 1
      after = place
    }
    if (rows.length < batch) return count
  }
}

interface Row extends Record<string, unknown> {
  value_of_it: Uint8Array | string
}

/** A batch of the rows after one, in the order of their keys, which are their columns `key_0`, `key_1` and so on. */
function read(tx: Transaction, { table, column, key, from, only }: SealedColumn, after: Value[] | undefined): Promise<Row[]> {
  const keys = raw(key.map((name) => `${table}.${name}`).join(', '))
  const named = raw(key.map((name, index) => `${table}.${name} AS key_${index}`).join(', '))
  const value = raw(`${table}.${column}`)
  const some = only === undefined ? empty : sql` AND ${raw(only)}`
  const rest = after === undefined ? empty : sql` AND (${keys}) > (${join(after)})`
  return tx.all<Row>(
    sql`SELECT *, ${named}, ${value} AS value_of_it FROM ${raw(from ?? table)}
      WHERE ${value} IS NOT NULL${some}${rest} ORDER BY ${keys} LIMIT ${batch}`,
  )
}

function opened(seal: Seal, sealed: Uint8Array, context: string, { table, column }: SealedColumn, place: Value[]): Buffer {
  try {
    return seal.open(sealed, context)
  } catch (error) {
    const message = `${table}.${column} of row ${place.join(' ')} cannot be decrypted with the master key in use; nothing was changed.`
    throw new Error(message, { cause: error })
  }
}
