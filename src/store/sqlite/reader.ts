import { DatabaseSync } from 'node:sqlite'
import type { Sql } from 'sql-template-tag'
import { parameters } from '../database.ts'
import { stopping } from '../faults.ts'
import { type Prepared, Statements } from './statements.ts'

/** The connection for short reads. It sees only data that is synced to disk, not a commit that is still being synced. */
export class DurableReader {
  readonly #database: DatabaseSync
  readonly #statements: Statements

  constructor(file: string) {
    this.#database = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
    this.#database.exec('PRAGMA cache_size = -8000; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY')
    this.#statements = new Statements(this.#database)
  }

  all(query: Sql): unknown[] {
    return this.#prepare(query.sql).all(parameters(query))
  }

  get(query: Sql): unknown {
    return this.#prepare(query.sql).get(parameters(query))
  }

  /** Keeps reading the state before the next commit, until `showCommit`. */
  hideCommit(): void {
    this.#prepare('BEGIN').run()
    this.#prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get([])
  }

  showCommit(): void {
    if (this.#database.isTransaction) this.#prepare('COMMIT').run()
  }

  close(): void {
    this.#database.close()
  }

  #prepare(text: string): Prepared {
    if (!this.#database.isOpen) throw stopping()
    return this.#statements.prepare(text)
  }
}
