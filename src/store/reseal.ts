import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import { raw, sql, type Transaction } from './database.ts'

const batch = 200

/** Opens every value of a sealed column and seals it under another key. Returns how many; throws when one cannot be opened. */
export async function reseal(tx: Transaction, declared: SealedColumn, from: Seal, to: Seal): Promise<number> {
  const { table, base64 } = declared
  const column = raw(declared.column)
  let count = 0
  for (let after = 0; ;) {
    const rows = await read(tx, declared, after)
    for (const row of rows) {
      after = row.rowid_of_it
      const kept = row.value_of_it
      const context = declared.context(row)
      const plain = opened(from, typeof kept === 'string' ? Buffer.from(kept, 'base64') : kept, context, declared, after)
      const anew = to.seal(plain, context)
      await tx.run(sql`UPDATE ${raw(table)} SET ${column} = ${base64 ? anew.toString('base64') : anew} WHERE rowid = ${after}`)
      count += 1
    }
    if (rows.length < batch) return count
  }
}

interface Row extends Record<string, unknown> {
  rowid_of_it: number
  value_of_it: Uint8Array | string
}

function read(tx: Transaction, { table, column, from, only }: SealedColumn, after: number): Promise<Row[]> {
  const rowid = raw(`${table}.rowid`)
  const value = raw(`${table}.${column}`)
  const some = only === undefined ? sql`` : sql` AND ${raw(only)}`
  return tx.all<Row>(
    sql`SELECT *, ${rowid} AS rowid_of_it, ${value} AS value_of_it FROM ${raw(from ?? table)}
      WHERE ${rowid} > ${after} AND ${value} IS NOT NULL${some} ORDER BY ${rowid} LIMIT ${batch}`,
  )
}

function opened(seal: Seal, sealed: Uint8Array, context: string, { table, column }: SealedColumn, rowid: number): Buffer {
  try {
    return seal.open(sealed, context)
  } catch (error) {
    const message = `${table}.${column} of row ${rowid} cannot be decrypted with the master key in use; nothing was changed.`
    throw new Error(message, { cause: error })
  }
}
