import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Sql, Transaction } from './database.ts'

/** One transaction while its work runs: prepared statements on the writing connection. Throws when it is used after that. */
export class OpenTransaction implements Transaction {
  readonly #database: DatabaseSync
  readonly #statements: Map<string, StatementSync>
  readonly #listeners: (() => void)[]
  #open = true

  constructor(database: DatabaseSync, statements: Map<string, StatementSync>, listeners: (() => void)[]) {
    this.#database = database
    this.#statements = statements
    this.#listeners = listeners
  }

  async all<Row>(query: Sql): Promise<Row[]> {
    return this.#statement(query).all(...values(query)) as Row[]
  }

  async get<Row>(query: Sql): Promise<Row | undefined> {
    return this.#statement(query).get(...values(query)) as Row | undefined
  }

  async run(query: Sql): Promise<{ changes: number }> {
    return { changes: Number(this.#statement(query).run(...values(query)).changes) }
  }

  afterCommit(listener: () => void): void {
    this.#listeners.push(listener)
  }

  end(): void {
    this.#open = false
  }

  #statement(query: Sql): StatementSync {
    if (!this.#open) throw new Error('A transaction was used after its work had ended.')
    return prepared(this.#database, this.#statements, query)
  }
}

/** Statements are kept by their text; lists with many filters make some hundreds, never user text. */
export function prepared(database: DatabaseSync, statements: Map<string, StatementSync>, query: Sql): StatementSync {
  const text = query.sql
  let statement = statements.get(text)
  if (statement) return statement
  if (statements.size >= 500) statements.delete(statements.keys().next().value!)
  statement = database.prepare(text)
  statements.set(text, statement)
  return statement
}

/** The parameters of a query. */
export function values(query: Sql): SQLInputValue[] {
  return query.values as SQLInputValue[]
}
