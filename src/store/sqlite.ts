import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { Fault, storageFull } from '../core/fault.ts'
import type { Log } from '../core/log.ts'
import type { Database, Sql, Transaction } from './database.ts'
import { sql } from './database.ts'
import { Helper } from './sqlite-helper.ts'
import { OpenTransaction, prepared, values } from './sqlite-transaction.ts'

/** Longest time one group of transactions may hold the event loop before it commits, in milliseconds. */
const groupTime = 8

const sqliteFull = 13
const sqliteWriteFailed = 778 // SQLITE_IOERR_WRITE

/** Frames in the write-ahead log (4 KiB each) above which writers wait for a whole checkpoint, so that it starts again from its beginning. */
const longLog = 16_384

interface Waiting {
  work: (tx: Transaction) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

interface Finished {
  waiting: Waiting
  value: unknown
  listeners: (() => void)[]
}

/**
 * The embedded engine: one file, one writer, group commit.
 *
 * Every transaction that arrived while the last group was being forced to disk runs in the next group, each under its own
 * savepoint; then one COMMIT and one fdatasync serve them all. The COMMIT writes the log without waiting for the disk
 * (`synchronous=NORMAL`, which still orders the log's restart), and the fdatasync runs in libuv's thread pool: a slow disk delays
 * answers, never the event loop. Nobody hears of success before that fdatasync returned. Checkpoints run in a thread of their own.
 */
export class SqliteDatabase implements Database {
  readonly #writer: DatabaseSync
  readonly #reader: DatabaseSync
  readonly #writing = new Map<string, StatementSync>()
  readonly #reading = new Map<string, StatementSync>()
  readonly #log: Log
  readonly #checkpoints: Helper
  readonly #slowReads: Helper
  readonly #walFile: FileHandle
  readonly #sync: (file: FileHandle) => Promise<void>
  #queue: Waiting[] = []
  #pumping: Promise<void> | undefined
  #dirty = false
  #timer: NodeJS.Timeout | undefined
  #checkpointing: Promise<void> | undefined
  #gate: Promise<void> | undefined
  #broken: Error | undefined
  #closed = false

  private constructor(
    file: string,
    log: Log,
    walFile: FileHandle,
    writer: DatabaseSync,
    sync: (file: FileHandle) => Promise<void>,
  ) {
    this.#log = log
    this.#walFile = walFile
    this.#writer = writer
    this.#sync = sync
    this.#reader = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
    this.#reader.exec('PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF')
    this.#checkpoints = new Helper(file)
    this.#slowReads = new Helper(file)
  }

  /**
   * Opens the file (checked and migrated before by `prepare()`).
   * `sync` is how the log is forced to disk; tests put a slow or failing disk in its place.
   */
  static async open(
    file: string,
    log: Log,
    sync: (file: FileHandle) => Promise<void> = (handle) => handle.datasync(),
  ): Promise<SqliteDatabase> {
    const writer = new DatabaseSync(file, { timeout: 5000 })
    writer.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF;
      PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY`)
    writer.exec('BEGIN IMMEDIATE; COMMIT')
    const walFile = await open(`${file}-wal`, 'r')
    return new SqliteDatabase(file, log, walFile, writer, sync)
  }

  async all<Row>(query: Sql): Promise<Row[]> {
    return prepared(this.#reader, this.#reading, query).all(...values(query)) as Row[]
  }

  async get<Row>(query: Sql): Promise<Row | undefined> {
    return prepared(this.#reader, this.#reading, query).get(...values(query)) as Row | undefined
  }

  slow<Row>(query: Sql, deadline: number): Promise<Row[]> {
    return this.#slowReads.read<Row>(query.sql, values(query), deadline)
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.#closed)
      return Promise.reject(new Fault('internal_error', 'The box is stopping.', { code: 'stopping', retryAfter: 5 }))
    if (this.#broken) return Promise.reject(this.#broken)
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      this.#pumping ??= this.#pump()
    })
  }

  async probe(): Promise<void> {
    await this.transaction((tx) => tx.run(sql`UPDATE box SET probed = probed + 1`))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    while (this.#pumping) await this.#pumping
    clearTimeout(this.#timer)
    await this.#checkpointing
    await Promise.all([this.#checkpoints.stop(), this.#slowReads.stop()])
    this.#reader.close()
    this.#writer.exec('PRAGMA optimize')
    this.#writer.close()
    await this.#walFile.close()
  }

  async #pump(): Promise<void> {
    // a turn of the event loop first: what arrives in the same turn shares the first commit
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#queue.length > 0) {
      if (this.#gate) await this.#gate
      await this.#group()
    }
    this.#pumping = undefined
  }

  async #group(): Promise<void> {
    const finished: Finished[] = []
    const taken: Waiting[] = []
    try {
      const changes = await this.#run(taken, finished)
      if (changes) await this.#force()
    } catch (error) {
      const fault = this.#fault(error)
      // when not even BEGIN went through, nobody was taken and all who wait are told
      for (const waiting of taken.length > 0 ? taken : this.#queue.splice(0)) waiting.reject(fault)
      return
    }
    for (const { waiting, value, listeners } of finished) {
      waiting.resolve(value)
      for (const listener of listeners) setImmediate(() => this.#tell(listener))
    }
  }

  /** One BEGIN … COMMIT; work that throws is rolled back and rejected alone. Answers whether anything was written. */
  async #run(taken: Waiting[], finished: Finished[]): Promise<boolean> {
    const before = this.#totalChanges()
    this.#exec('BEGIN IMMEDIATE')
    const end = performance.now() + groupTime
    try {
      for (let waiting = this.#queue.shift(); waiting; waiting = performance.now() < end ? this.#queue.shift() : undefined) {
        taken.push(waiting)
        this.#exec('SAVEPOINT one')
        const listeners: (() => void)[] = []
        const tx = new OpenTransaction(this.#writer, this.#writing, listeners)
        try {
          const value = await waiting.work(tx)
          this.#exec('RELEASE one')
          finished.push({ waiting, value, listeners })
        } catch (error) {
          // a full disk makes SQLite roll back the whole group by itself
          if (!this.#writer.isTransaction) throw error
          this.#exec('ROLLBACK TO one')
          this.#exec('RELEASE one')
          waiting.reject(this.#fault(error))
        } finally {
          tx.end()
        }
      }
      this.#exec('COMMIT')
    } catch (error) {
      if (this.#writer.isTransaction) this.#exec('ROLLBACK')
      throw error
    }
    return this.#totalChanges() !== before
  }

  async #force(): Promise<void> {
    try {
      await this.#sync(this.#walFile)
    } catch (error) {
      // after a failed fsync the kernel may have dropped the pages: what is on disk is unknown until the file is read anew
      this.#broken = new Fault('internal_error', 'The disk failed while storing; the box must be restarted.', {
        code: 'storage_failed',
        cause: error,
      })
      this.#log.fatal({ err: error }, 'fsync failed: nothing more is written until a restart')
      throw this.#broken
    }
    this.#dirty = true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (this.#dirty && !this.#closed)
        this.#checkpointing ??= this.#checkpoint().finally(() => (this.#checkpointing = undefined))
    }, 250)
  }

  async #checkpoint(): Promise<void> {
    this.#dirty = false
    try {
      const frames = await this.#checkpoints.checkpoint()
      if (frames < longLog) return
      // the log only starts again from its beginning when no frame is left: hold the writers for the short rest
      let release!: () => void
      this.#gate = new Promise((resolve) => (release = resolve))
      try {
        await this.#checkpoints.checkpoint()
      } finally {
        this.#gate = undefined
        release()
      }
    } catch (error) {
      this.#dirty = true
      this.#log.warn({ err: error }, 'a checkpoint failed and will be tried again')
    }
  }

  #exec(text: string): void {
    let statement = this.#writing.get(text)
    if (!statement) this.#writing.set(text, (statement = this.#writer.prepare(text)))
    statement.run()
  }

  #totalChanges(): number {
    let statement = this.#writing.get('changes')
    if (!statement) this.#writing.set('changes', (statement = this.#writer.prepare('SELECT total_changes() AS n')))
    return (statement.get() as { n: number }).n
  }

  #tell(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#log.error({ err: error }, 'a listener failed after a commit')
    }
  }

  #fault(error: unknown): unknown {
    const code = (error as { errcode?: number }).errcode
    // some file systems answer a write for which there is no room with an input/output error
    return code !== undefined && ((code & 0xff) === sqliteFull || code === sqliteWriteFailed) ? storageFull(error) : error
  }
}
