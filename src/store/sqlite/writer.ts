import { AsyncLocalStorage } from 'node:async_hooks'
import { DatabaseSync } from 'node:sqlite'
import { stuck } from '../faults.ts'
import type { WaitingTransaction } from '../marks.ts'
import { asFault } from './failures.ts'
import { Statements } from './statements.ts'
import { OpenTransaction } from './transaction.ts'

/** Longest time that a group of transactions may block the event loop before it commits, in milliseconds. */
const groupTime = 8

/** The transactions of one commit. */
export interface Group {
  taken: WaitingTransaction[]
  finished: { waiting: WaitingTransaction; value: unknown; tx: OpenTransaction }[]
  wrote: boolean
}

interface WriterOptions {
  /** Milliseconds after which work that does not settle is aborted. */
  timeout: number
  /** Runs all work twice. */
  twice: boolean
}

/** The only connection that writes. */
export class GroupWriter {
  readonly #database: DatabaseSync
  readonly #statements: Statements
  readonly #timeout: number
  readonly #twice: boolean
  readonly #inside = new AsyncLocalStorage<OpenTransaction>()
  #abort: ((error: Error) => void) | undefined

  constructor(file: string, { timeout, twice }: WriterOptions) {
    this.#timeout = timeout
    this.#twice = twice
    this.#database = new DatabaseSync(file, { timeout: 5000 })
    // secure_delete: deleted bytes are zeroed where that needs no further write
    this.#database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
      PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000;
      PRAGMA temp_store = MEMORY; PRAGMA secure_delete = FAST`)
    // makes the log, if there is none
    this.#database.exec('BEGIN IMMEDIATE; COMMIT')
    // nothing else writes: waiting for a lock would only block the event loop
    this.#database.exec('PRAGMA busy_timeout = 50')
    this.#statements = new Statements(this.#database)
  }

  /** True if the caller runs inside the work of an open transaction. */
  get inside(): boolean {
    return this.#inside.getStore()?.open ?? false
  }

  /**
   * One BEGIN … COMMIT around as many transactions from the queue as fit into `groupTime`; they are written, not yet synced, when it resolves.
   * Work that throws is rolled back and rejected alone. Throws when the whole group is lost; none is taken when BEGIN itself failed.
   */
  async commit(queue: WaitingTransaction[], group: Group, beforeCommit: () => void): Promise<void> {
    this.#exec('BEGIN IMMEDIATE')
    const end = performance.now() + groupTime
    const watchdog = setInterval(() => this.#abort?.(stuck(this.#timeout)), this.#timeout)
    try {
      do await this.#one(queue.shift()!, group)
      while (queue.length > 0 && performance.now() < end)
      if (group.wrote) beforeCommit()
      this.#exec('COMMIT')
    } catch (error) {
      if (this.#database.isTransaction) this.#exec('ROLLBACK')
      throw error
    } finally {
      clearInterval(watchdog)
    }
  }

  close(): void {
    this.#database.close()
  }

  async #one(waiting: WaitingTransaction, group: Group): Promise<void> {
    group.taken.push(waiting)
    if (this.#twice) await this.#rehearse(waiting.work)
    this.#exec('SAVEPOINT one')
    const tx = new OpenTransaction(this.#database, this.#statements)
    try {
      const value = await this.#settled(() => this.#inside.run(tx, waiting.work, tx))
      tx.mustNotBeLost()
      this.#exec('RELEASE one')
      group.finished.push({ waiting, value, tx })
      group.wrote ||= tx.writes > 0
    } catch (error) {
      tx.rolledBack()
      // a full disk makes SQLite roll back the whole group by itself
      tx.mustNotBeLost()
      this.#exec('ROLLBACK TO one')
      this.#exec('RELEASE one')
      waiting.reject(asFault(error))
    } finally {
      tx.end()
    }
  }

  /** Runs the work and rolls it back, as an engine does that finds a conflict with other writers at the end. */
  async #rehearse(work: WaitingTransaction['work']): Promise<void> {
    this.#exec('SAVEPOINT one')
    const tx = new OpenTransaction(this.#database, this.#statements)
    // whether the work fails is decided by its second run
    await this.#settled(() => this.#inside.run(tx, work, tx)).catch(() => undefined)
    tx.end()
    tx.rolledBack()
    tx.mustNotBeLost()
    this.#exec('ROLLBACK TO one')
    this.#exec('RELEASE one')
  }

  #settled(work: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#abort = reject
      work().then(resolve, reject)
    })
  }

  #exec(text: string): void {
    this.#statements.prepare(text).run()
  }
}
