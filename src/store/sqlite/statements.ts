import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Sql } from 'sql-template-tag'
import { lruMap } from '../../core/memory.ts'

/** A prepared statement; `writes` is false only for a plain SELECT. */
interface Prepared {
  statement: StatementSync
  writes: boolean
}

/** The prepared statements of one connection, by text. Lists with many filters make a few hundred; user input is never part of the text. */
export class Statements {
  readonly #database: DatabaseSync
  readonly #kept = lruMap<Prepared>(500)

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  prepare(text: string): Prepared {
    let prepared = this.#kept.get(text)
    if (prepared) return prepared
    // SQLite uses the value of a bare LIMIT parameter for planning and prepares the statement again for each value
    const statement = this.#database.prepare(text.replaceAll('LIMIT ?', 'LIMIT (0 + ?)'))
    prepared = { statement, writes: !/^\s*SELECT\b/i.test(text) }
    this.#kept.set(text, prepared)
    return prepared
  }
}

/** The parameters of a query. Throws for values that SQLite would silently misread. */
export function parameters(query: Sql): SQLInputValue[] {
  for (const value of query.values) {
    // an object in the first position would be read as named parameters, and NaN stored as NULL
    if (typeof value === 'object' ? value !== null && !(value instanceof Uint8Array) : Number.isNaN(value))
      throw new TypeError(`${String(value)} cannot be stored: only text, numbers, null and bytes can.`)
  }
  return query.values as SQLInputValue[]
}
