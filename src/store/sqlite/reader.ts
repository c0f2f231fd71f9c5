import { DatabaseSync } from 'node:sqlite'
import type { Sql } from 'sql-template-tag'
import { parameters } from '../database.ts'
import { stopping } from '../faults.ts'
import { asFault } from './failures.ts'
import { type Prepared, Statements } from './statements.ts'

/** The connection for short reads. It sees only data that is synced to disk, not a commit that is still being synced. Throws a Fault where the disk fails. */
export class DurableReader {
  readonly #file: string
  #database: DatabaseSync
  #statements: Statements
  #closed = false

  constructor(file: string) {
    this.#file = file
    this.#database = opened(file)
    this.#statements = new Statements(this.#database)
  }

  all(query: Sql): unknown[] {
    try {
      return this.#prepare(query.sql).all(parameters(query))
    } catch (error) {
      throw asFault(error)
    }
  }

  get(query: Sql): unknown {
    try {
      return this.#prepare(query.sql).get(parameters(query))
    } catch (error) {
      throw asFault(error)
    }
  }

  /** Keeps reading the state before the next commit, until `showCommit`. */
  hideCommit(): void {
    this.#prepare('BEGIN').run()
    this.#prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get([])
  }

  /** Reads the newest state from now on. Where the disk failed meanwhile that takes a new connection, which the next read makes. */
  showCommit(): void {
    try {
      if (this.#database.isOpen && this.#database.isTransaction) this.#prepare('COMMIT').run()
    } catch {
      // it would show the former state for ever
      this.#database.close()
    }
  }

  close(): void {
    this.#closed = true
    if (this.#database.isOpen) this.#database.close()
  }

  #prepare(text: string): Prepared {
    if (this.#closed) throw stopping()
    if (!this.#database.isOpen) {
      this.#database = opened(this.#file)
      this.#statements = new Statements(this.#database)
    }
    return this.#statements.prepare(text)
  }
}

function opened(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  database.exec('PRAGMA cache_size = -8000; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY')
  return database
}
