import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Sql } from 'sql-template-tag'

/** A prepared statement; `writes` is false only when it is certain that it does not. */
export interface Prepared {
  statement: StatementSync
  writes: boolean
}

/** The prepared statements of one connection, by their text; lists with many filters make some hundreds, never user text. */
export class Statements {
  readonly #database: DatabaseSync
  readonly #kept = new Map<string, Prepared>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  prepare(text: string): Prepared {
    let prepared = this.#kept.get(text)
    if (prepared) return prepared
    if (this.#kept.size >= 500) this.#kept.delete(this.#kept.keys().next().value!)
    // SQLite plans with the number that a bare parameter of LIMIT has, and so prepares the statement anew each time that one is bound
    const statement = this.#database.prepare(text.replaceAll('LIMIT ?', 'LIMIT (0 + ?)'))
    prepared = { statement, writes: !/^\s*SELECT\b/i.test(text) }
    this.#kept.set(text, prepared)
    return prepared
  }
}

/** The parameters of a query. Throws for what SQLite would take for something else without a word. */
export function parameters(query: Sql): SQLInputValue[] {
  for (const value of query.values) {
    // an object in the first place would be read as named parameters, and NaN be stored as NULL
    if (typeof value === 'object' ? value !== null && !(value instanceof Uint8Array) : Number.isNaN(value))
      throw new TypeError(`${String(value)} cannot be stored: only text, numbers, null and octets can.`)
  }
  return query.values as SQLInputValue[]
}
