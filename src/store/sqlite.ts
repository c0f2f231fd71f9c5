import { AsyncLocalStorage } from 'node:async_hooks'
import { DatabaseSync } from 'node:sqlite'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Sql } from 'sql-template-tag'
import { Fault } from '../core/fault.ts'
import type { Log } from '../core/log.ts'
import type { Database, Transaction } from './database.ts'
import { sql } from './database.ts'
import { Checkpoints } from './sqlite-checkpoints.ts'
import { asFault, isSyncFailure, stopping } from './sqlite-failures.ts'
import { Helper } from './sqlite-helper.ts'
import { parameters, Statements } from './sqlite-statements.ts'
import { OpenTransaction } from './sqlite-transaction.ts'

/** Longest time one group of transactions may hold the event loop before it commits, in milliseconds. */
const groupTime = 8

export interface SqliteOptions {
  /** How the log is forced to disk; tests put a slow or failing disk in its place. */
  sync?: (file: FileHandle) => Promise<void>
  /** Milliseconds after which work that does not settle is given up: a bug, but not one that may stop the whole box. */
  patience?: number
  /** Frames of 4 KiB in the write-ahead log above which writers wait for a whole checkpoint. */
  longLog?: number
}

interface Waiting {
  work: (tx: Transaction) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

interface Group {
  taken: Waiting[]
  finished: { waiting: Waiting; value: unknown; listeners: (() => void)[] }[]
  wrote: boolean
}

/**
 * The embedded engine: one file, one writer, group commit.
 *
 * Every transaction that arrived while the last group was being forced to disk runs in the next group, each under its own
 * savepoint; then one COMMIT and one fdatasync serve them all. The COMMIT writes the log without waiting for the disk
 * (`synchronous=NORMAL`, which still syncs the log's header when it starts again, and log and file in a checkpoint), and the
 * fdatasync runs in libuv's thread pool: a slow disk delays answers, never the event loop. Nobody hears of success before that
 * fdatasync returned, and until then `all` and `get` see the state before the group; only `slow` may see a commit a moment early.
 * Checkpoints run in a thread of their own.
 *
 * The handle on the log stays good because the log is unlinked only by the last connection that closes, and the writer stays open.
 * That rests on POSIX locks, which a process loses when it closes any handle of the locked file: nothing in this process may open
 * the database file or its `-shm` by hand while the store is open.
 */
export class SqliteDatabase implements Database {
  readonly #writer: DatabaseSync
  readonly #reader: DatabaseSync
  readonly #writing: Statements
  readonly #reading: Statements
  readonly #log: Log
  readonly #checkpoints: Checkpoints
  readonly #slowReads: Helper
  readonly #dataFile: FileHandle
  readonly #walFile: FileHandle
  readonly #sync: (file: FileHandle) => Promise<void>
  readonly #patience: number
  readonly #inside = new AsyncLocalStorage<OpenTransaction>()
  #queue: Waiting[] = []
  #pumping: Promise<void> | undefined
  #group: Promise<void> | undefined
  #giveUp: ((error: Error) => void) | undefined
  #broken: Fault | undefined
  #closing: Promise<void> | undefined

  /** Opens the file (checked and migrated before by `prepare()`). */
  static async open(file: string, log: Log, options: SqliteOptions = {}): Promise<SqliteDatabase> {
    const writer = new DatabaseSync(file, { timeout: 5000 })
    writer.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF;
      PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY`)
    // makes the log, if there is none
    writer.exec('BEGIN IMMEDIATE; COMMIT')
    // nobody else writes: to wait for a lock would only hold up the event loop
    writer.exec('PRAGMA busy_timeout = 50')
    const walFile = await open(`${file}-wal`, 'r')
    const dataFile = await open(file, 'r')
    const folder = await open(dirname(file), 'r')
    await folder.sync()
    await folder.close()
    return new SqliteDatabase(file, log, writer, { walFile, dataFile }, options)
  }

  private constructor(
    file: string,
    log: Log,
    writer: DatabaseSync,
    files: { walFile: FileHandle; dataFile: FileHandle },
    options: SqliteOptions,
  ) {
    this.#log = log
    this.#walFile = files.walFile
    this.#dataFile = files.dataFile
    this.#sync = options.sync ?? ((handle) => handle.datasync())
    this.#patience = options.patience ?? 10_000
    this.#writer = writer
    this.#writing = new Statements(writer)
    this.#reader = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
    this.#reader.exec('PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY')
    this.#reading = new Statements(this.#reader)
    this.#slowReads = new Helper(file)
    this.#checkpoints = new Checkpoints({
      file,
      ...files,
      log,
      longLog: options.longLog ?? 16_384,
      quiet: async () => this.#group,
      broken: (error) => void this.#break(error),
    })
  }

  async all<Row>(query: Sql): Promise<Row[]> {
    return this.#prepareRead(query).all(...parameters(query)) as Row[]
  }

  async get<Row>(query: Sql): Promise<Row | undefined> {
    return this.#prepareRead(query).get(...parameters(query)) as Row | undefined
  }

  async slow<Row>(query: Sql, deadline: number): Promise<Row[]> {
    return this.#slowReads.read<Row>(query.sql, parameters(query), deadline)
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(stopping())
    if (this.#broken) return Promise.reject(this.#broken)
    if (this.#inside.getStore()?.open)
      return Promise.reject(new Error('transaction() was called inside the work of another: it would wait for itself.'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      this.#pumping ??= this.#pump()
    })
  }

  async probe(): Promise<void> {
    await this.transaction((tx) => tx.run(sql`UPDATE box SET probed = probed + 1`))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    while (this.#pumping) await this.#pumping
    await Promise.all([this.#checkpoints.stop(), this.#slowReads.stop()])
    if (this.#broken) {
      // the last connection to close copies the log and removes it, unless it is a reader: the log must be read anew at the next start
      this.#writer.close()
      this.#reader.close()
    } else {
      this.#reader.close()
      this.#optimize()
      this.#writer.close()
    }
    await this.#walFile.close()
    await this.#dataFile.close()
  }

  async #pump(): Promise<void> {
    // a turn of the event loop first: what arrives in the same turn shares the first commit
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#queue.length > 0) {
      if (this.#checkpoints.gate) await this.#checkpoints.gate
      if (this.#broken) {
        for (const waiting of this.#queue.splice(0)) waiting.reject(this.#broken)
        break
      }
      this.#group = this.#runGroup()
      await this.#group
      this.#group = undefined
    }
    this.#pumping = undefined
  }

  async #runGroup(): Promise<void> {
    const group: Group = { taken: [], finished: [], wrote: false }
    try {
      await this.#commit(group)
      if (group.wrote) await this.#force()
      this.#showCommit()
    } catch (error) {
      const fault = isSyncFailure(error) ? this.#break(error) : asFault(error)
      if (!this.#broken) this.#showCommit()
      // when not even BEGIN went through, nobody was taken and all who wait are told
      for (const waiting of group.taken.length > 0 ? group.taken : this.#queue.splice(0)) waiting.reject(fault)
      return
    }
    for (const { waiting, value, listeners } of group.finished) {
      waiting.resolve(value)
      for (const listener of listeners) setImmediate(() => this.#tell(listener))
    }
  }

  /** One BEGIN … COMMIT around as many transactions as wait and fit into `groupTime`. */
  async #commit(group: Group): Promise<void> {
    this.#exec('BEGIN IMMEDIATE')
    const end = performance.now() + groupTime
    const watchdog = setTimeout(() => this.#giveUp?.(stuck(this.#patience)), this.#patience)
    try {
      do await this.#one(this.#queue.shift()!, group)
      while (this.#queue.length > 0 && performance.now() < end)
      if (group.wrote) this.#hideCommit()
      this.#exec('COMMIT')
    } catch (error) {
      if (this.#writer.isTransaction) this.#exec('ROLLBACK')
      throw error
    } finally {
      clearTimeout(watchdog)
    }
  }

  /** Work that throws is rolled back and rejected alone; throws only when the whole group is lost. */
  async #one(waiting: Waiting, group: Group): Promise<void> {
    group.taken.push(waiting)
    this.#exec('SAVEPOINT one')
    const tx = new OpenTransaction(this.#writer, this.#writing)
    try {
      const value = await this.#settled(() => this.#inside.run(tx, waiting.work, tx))
      tx.mustNotBeLost()
      this.#exec('RELEASE one')
      group.finished.push({ waiting, value, listeners: tx.listeners })
      group.wrote ||= tx.wrote
    } catch (error) {
      // a full disk makes SQLite roll back the whole group by itself
      tx.mustNotBeLost()
      this.#exec('ROLLBACK TO one')
      this.#exec('RELEASE one')
      waiting.reject(asFault(error))
    } finally {
      tx.end()
    }
  }

  #settled(work: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject
      work().then(resolve, reject)
    })
  }

  async #force(): Promise<void> {
    try {
      await this.#sync(this.#walFile)
    } catch (error) {
      throw this.#break(error)
    }
    this.#checkpoints.schedule()
  }

  /** After a failed sync the kernel may have dropped what it could not write: what is on disk is unknown until the next start reads it. */
  #break(error: unknown): Fault {
    if (this.#broken) return this.#broken
    this.#log.fatal({ err: error }, 'the disk failed to keep what was written: nothing more is stored until a restart')
    this.#broken = new Fault('internal_error', 'The disk failed while storing; the box must be restarted.', {
      code: 'storage_failed',
      cause: error,
    })
    return this.#broken
  }

  /** Keeps the readers on what is on disk already while the next commit is forced there. */
  #hideCommit(): void {
    this.#reading.prepare('BEGIN').statement.run()
    this.#reading.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').statement.get()
  }

  #showCommit(): void {
    if (this.#reader.isTransaction) this.#reading.prepare('COMMIT').statement.run()
  }

  #prepareRead(query: Sql): ReturnType<DatabaseSync['prepare']> {
    if (!this.#reader.isOpen) throw stopping()
    return this.#reading.prepare(query.sql).statement
  }

  #exec(text: string): void {
    this.#writing.prepare(text).statement.run()
  }

  #optimize(): void {
    try {
      this.#writer.exec('PRAGMA optimize')
    } catch (error) {
      this.#log.warn({ err: error }, 'the statistics of the database were not renewed')
    }
  }

  #tell(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#log.error({ err: error }, 'a listener failed after a commit')
    }
  }
}

function stuck(patience: number): Error {
  return new Error(`Work inside a transaction did not settle within ${patience} ms: only database calls may be awaited there.`)
}
