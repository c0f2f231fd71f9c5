import { DatabaseSync } from 'node:sqlite'
import type { SealedColumn } from '../../core/seal/seal.ts'
import { value } from './snapshot.ts'

/**
 * Drops the values that are encrypted under a lost master key, so that a box can run with a new one: a nullable value becomes null, and
 * other rows are deleted. Returns the number of lost values by `table.column`.
 */
export function dropUnreadable(file: string, columns: readonly SealedColumn[]): Record<string, number> {
  const database = new DatabaseSync(file)
  try {
    database.exec('PRAGMA foreign_keys = ON; BEGIN IMMEDIATE')
    const lost = columns.map((declared) => {
      const { table, column, only } = declared
      const where = `${column} IS NOT NULL AND ${only ?? '1'}`
      const count = Number(value(database, `SELECT count(*) FROM ${declared.from ?? table} WHERE ${table}.${where}`))
      const remove = mayBeMissing(database, table, column)
        ? `UPDATE ${table} SET ${column} = NULL WHERE ${where}`
        : `DELETE FROM ${table} WHERE ${where}`
      database.exec(declared.lost ?? remove)
      return [`${table}.${column}`, count] as const
    })
    database.exec('UPDATE box SET master_key_name = NULL; COMMIT')
    // unreadable data is not kept either
    database.exec('VACUUM')
    return Object.fromEntries(lost.filter(([, count]) => count > 0))
  } finally {
    database.close()
  }
}

function mayBeMissing(database: DatabaseSync, table: string, column: string): boolean {
  const row = database.prepare('SELECT "notnull" AS needed FROM pragma_table_info(?) WHERE name = ?').get(table, column)
  return row?.['needed'] === 0
}
