import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'
import { lruMap } from '../../core/memory.ts'

type Row = Record<string, SQLOutputValue>

/** A prepared statement. */
export class Prepared {
  /** False only for a plain SELECT. */
  readonly writes: boolean
  readonly #statement: StatementSync
  #columns: string[] = []
  #empty: Row = {}

  constructor(statement: StatementSync, writes: boolean) {
    this.#statement = statement
    this.writes = writes
    statement.setReturnArrays(true)
  }

  all(values: readonly SQLInputValue[]): Row[] {
    return (this.#statement.all(...values) as unknown as SQLOutputValue[][]).map((found) => this.#row(found))
  }

  get(values: readonly SQLInputValue[]): Row | undefined {
    const found = this.#statement.get(...values) as unknown as SQLOutputValue[] | undefined
    return found && this.#row(found)
  }

  run(values: readonly SQLInputValue[] = []): { changes: number } {
    return { changes: Number(this.#statement.run(...values).changes) }
  }

  /**
   * The objects that `node:sqlite` makes itself are hash tables: to read, copy and serialize one costs twice as much. A copy of an object that has
   * all columns already keeps its layout.
   */
  #row(found: readonly SQLOutputValue[]): Row {
    // other columns after a change of the schema
    if (found.length !== this.#columns.length) {
      this.#columns = this.#statement.columns().map(({ name }) => name)
      this.#empty = Object.fromEntries(this.#columns.map((name) => [name, null]))
    }
    const row = { ...this.#empty }
    for (let at = 0; at < found.length; at += 1) row[this.#columns[at]!] = found[at]!
    return row
  }
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
    prepared = new Prepared(statement, !/^\s*SELECT\b/i.test(text))
    this.#kept.set(text, prepared)
    return prepared
  }
}
