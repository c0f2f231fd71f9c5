import type { DatabaseSync } from 'node:sqlite'
import type { Sql } from 'sql-template-tag'
import { parameters, type Transaction, type Value } from '../database.ts'
import type { Prepared, Statements } from './statements.ts'

/** A transaction inside a group; it throws once its work has ended. */
export class OpenTransaction implements Transaction {
  readonly engine = 'sqlite'
  readonly listeners: (() => void)[] = []
  readonly #onRollback: (() => void)[] = []
  readonly #database: DatabaseSync
  readonly #statements: Statements
  #open = true
  #writes = 0
  #lost: unknown

  constructor(database: DatabaseSync, statements: Statements) {
    this.#database = database
    this.#statements = statements
  }

  get open(): boolean {
    return this.#open
  }

  get writes(): number {
    return this.#writes
  }

  async all<Row>(query: Sql): Promise<Row[]> {
    return this.#step(query, (statement, values) => statement.all(values)) as Row[]
  }

  async get<Row>(query: Sql): Promise<Row | undefined> {
    return this.#step(query, (statement, values) => statement.get(values)) as Row | undefined
  }

  async run(query: Sql): Promise<{ changes: number }> {
    return this.#step(query, (statement, values) => statement.run(values))
  }

  afterCommit(listener: () => void): void {
    this.#mustBeOpen()
    this.listeners.push(listener)
  }

  afterRollback(listener: () => void): void {
    this.#mustBeOpen()
    this.#onRollback.push(listener)
  }

  rolledBack(): void {
    for (const listener of this.#onRollback) listener()
  }

  end(): void {
    this.#open = false
  }

  /** Throws the error at which SQLite rolled back the whole group by itself, even when the work caught it. */
  mustNotBeLost(): void {
    if (this.#lost !== undefined) throw this.#lost
  }

  #step<Answer>(query: Sql, step: (statement: Prepared, values: Value[]) => Answer): Answer {
    this.#mustBeOpen()
    // after such a rollback every further statement would commit alone
    this.mustNotBeLost()
    const statement = this.#statements.prepare(query.sql)
    if (statement.writes) this.#writes += 1
    try {
      return step(statement, parameters(query))
    } catch (error) {
      if (!this.#database.isTransaction) this.#lost = error
      throw error
    }
  }

  #mustBeOpen(): void {
    if (!this.#open) throw new Error('A transaction was used after its work had ended.')
  }
}
