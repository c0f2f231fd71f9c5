import { fstatSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { performance } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import type { Sql } from 'sql-template-tag'
import { Fault } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import { type Database, parameters, type Polled, raw, type Recording, sql, type Transaction } from '../database.ts'
import { Checkpoints } from './checkpoints.ts'
import type { CommitWatch } from '../metrics.ts'
import { nested, stopping } from '../faults.ts'
import { Marks, type WaitingTransaction } from '../marks.ts'
import { asFault, isSyncFailure } from './failures.ts'
import { damageIn } from '../migrate.ts'
import { onlyCaches, OnlyRun } from './only-run.ts'
import { SqliteThread } from './thread.ts'
import { DurableReader } from './reader.ts'
import { databaseSize } from '../space.ts'
import { SlowReads } from '../slow-reads.ts'
import { type Group, GroupWriter } from './writer.ts'

export interface SqliteOptions {
  /** Syncs the log to disk; tests replace it by a slow or failing disk. */
  sync?: (file: FileHandle) => Promise<void>
  /** Milliseconds after which work that does not settle is aborted: a bug that must not stop the whole box. */
  timeout?: number
  /** Frames of 4 KiB in the write-ahead log above which writers wait for a full checkpoint. */
  longLog?: number
  /** Milliseconds from a write to the checkpoint that it starts. */
  checkpointDelay?: number | undefined
  watch?: CommitWatch
  /** Runs the work of every transaction twice, and keeps the second run: tests find work that changes something outside of its transaction. */
  twice?: boolean | undefined
}

/** Pages reclaimed at once, so that the event loop is not blocked. */
const reclaimBatch = 64

/** Bytes before the frames of a log, and before the page of each (sqlite.org/walformat.html, section 4). */
const logHeader = 32
const frameHeader = 24

/**
 * The embedded engine: one file, one writer, group commit.
 *
 * Every transaction that arrived while the last group was being synced to disk runs in the next group, each under its own
 * savepoint; then one COMMIT and one fdatasync serve them all. The COMMIT writes the log without waiting for the disk
 * (`synchronous=NORMAL`, which still syncs the log's header when it starts again, and log and file in a checkpoint), and the
 * fdatasync runs in libuv's thread pool: a slow disk delays answers, never the event loop. No transaction resolves before that
 * fdatasync has returned, and until then `all` and `get` see the state before the group; only `slow` may see a commit a moment early.
 * Checkpoints run in a thread of their own.
 *
 * The handle on the log stays good because the log is unlinked only by the last connection that closes, and the writer stays open.
 * That rests on POSIX locks, which a process loses when it closes any handle of the locked file: nothing in this process may open
 * the database file or its `-shm` by hand while the store is open.
 */
export class SqliteDatabase implements Database {
  readonly engine = 'sqlite'
  readonly run = new OnlyRun()
  readonly several = false
  readonly caches = onlyCaches
  readonly placesEvents = false
  readonly #file: string
  readonly #writer: GroupWriter
  readonly #reader: DurableReader
  readonly #log: Log
  readonly #checkpoints: Checkpoints
  readonly #slowReads: SlowReads
  readonly #integrityChecks = new Set<SqliteThread>()
  readonly #dataFile: FileHandle
  readonly #walFile: FileHandle
  readonly #sync: (file: FileHandle) => Promise<void>
  readonly #watch: CommitWatch | undefined
  readonly #marks = new Marks()
  #queue: WaitingTransaction[] = []
  #pumping: Promise<void> | undefined
  #group: Promise<void> | undefined
  #broken: Fault | undefined
  #closing: Promise<void> | undefined

  /** Opens the file (checked and migrated before by `prepare()`). */
  static async open(file: string, log: Log, options: SqliteOptions = {}): Promise<SqliteDatabase> {
    const writer = new GroupWriter(file, { timeout: options.timeout ?? 10_000, twice: options.twice ?? false })
    const walFile = await open(`${file}-wal`, 'r+')
    const dataFile = await open(file, 'r')
    const folder = await open(dirname(file), 'r')
    await folder.sync()
    await folder.close()
    return new SqliteDatabase(file, log, writer, { walFile, dataFile }, options)
  }

  private constructor(
    file: string,
    log: Log,
    writer: GroupWriter,
    files: { walFile: FileHandle; dataFile: FileHandle },
    options: SqliteOptions,
  ) {
    this.#file = file
    this.#log = log
    this.#walFile = files.walFile
    this.#dataFile = files.dataFile
    this.#sync = options.sync ?? ((handle) => handle.datasync())
    this.#watch = options.watch
    this.#writer = writer
    this.#reader = new DurableReader(file)
    this.#slowReads = new SlowReads(() => new SqliteThread(file))
    this.#checkpoints = new Checkpoints({
      file,
      ...files,
      log,
      longLog: options.longLog ?? 16_384,
      delay: options.checkpointDelay ?? 250,
      idle: async () => this.#group,
      broken: (error) => void this.#break(error),
    })
  }

  async all<Row>(query: Sql): Promise<Row[]> {
    return this.#reader.all(query) as Row[]
  }

  async get<Row>(query: Sql): Promise<Row | undefined> {
    return this.#reader.get(query) as Row | undefined
  }

  async slow<Row>(query: Sql, deadline: number, account = ''): Promise<Row[]> {
    try {
      return await this.#slowReads.read<Row>({ account, text: query.sql, values: parameters(query), deadline })
    } catch (error) {
      throw asFault(error)
    }
  }

  async inspect(): Promise<null> {
    return null
  }

  async damage(deadline: number): Promise<string | null> {
    if (this.#closing) throw stopping()
    // The integrity check of FTS5 reads the segments that its connection has cached, without asking whether another connection has merged
    // them since (a search does ask): any connection that was used before can report damage that is not there.
    const fresh = new SqliteThread(this.#file)
    this.#integrityChecks.add(fresh)
    try {
      const [row] = await fresh.read<{ quick_check: string }>('PRAGMA quick_check(1)', [], deadline)
      return damageIn(row)
    } finally {
      // a thread that is deep in SQLite ends only when SQLite does
      void fresh.stop().finally(() => this.#integrityChecks.delete(fresh))
    }
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(stopping())
    if (this.#broken) return Promise.reject(this.#broken)
    if (this.#writer.inside) return Promise.reject(nested())
    return new Promise<T>((resolve, reject) => {
      this.#queue.push(this.#marks.add({ work, resolve: resolve as (value: unknown) => void, reject }))
      this.#pumping ??= this.#marks.outside(() => this.#pump())
    })
  }

  async placeEvents(): Promise<void> {}

  async poll(after: number, limit: number): Promise<Polled> {
    return {
      events: await this.all(sql`SELECT seq, id FROM events WHERE seq > ${after} ORDER BY seq LIMIT ${limit}`),
      unplaced: false,
    }
  }

  /** Never: the disk answers. */
  onUnsure(): void {}

  marking<T>(mark: (tx: Transaction) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
    return this.#marks.marking(mark, work)
  }

  recording<T>(recording: Recording, work: () => Promise<T>): Promise<T> {
    return this.#marks.recording(recording, work)
  }

  reclaim(): Promise<boolean> {
    return this.transaction(async (tx) => {
      // one step a page: `run` would stop after the first
      const moved = await tx.all(sql`PRAGMA incremental_vacuum(${raw(String(reclaimBatch))})`)
      return moved.length > 0
    })
  }

  async reserveLog(bytes: number): Promise<void> {
    const { fd } = this.#walFile
    // the log must begin with its header
    if (fstatSync(fd).size === 0) await this.probe()
    // synchronous: no transaction may write meanwhile. Bytes after the last frame are never read (sqlite.org/walformat.html, section 4.4)
    const size = this.#uncopiedLog() + bytes
    const zeros = new Uint8Array(1024 * 1024)
    for (let end = fstatSync(fd).size; end < size; end += zeros.length) {
      writeSync(fd, zeros, 0, Math.min(zeros.length, size - end), end)
    }
  }

  /** The offset in the write-ahead log at which writing continues; 0 when all of it was copied and it restarts from its beginning. */
  #uncopiedLog(): number {
    // a separate connection: one inside a transaction cannot run this pragma
    const connection = new DatabaseSync(this.#file)
    try {
      const { log, checkpointed } = connection.prepare('PRAGMA wal_checkpoint(NOOP)').get() as Record<
        'log' | 'checkpointed',
        number
      >
      const { page_size } = connection.prepare('PRAGMA page_size').get() as { page_size: number }
      return checkpointed < log ? logHeader + log * (frameHeader + page_size) : 0
    } finally {
      connection.close()
    }
  }

  size(): Promise<number> {
    return databaseSize(this.#file)
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
    const checks = [...this.#integrityChecks].map((check) => check.stop())
    await Promise.all([this.#checkpoints.stop(), this.#slowReads.stop(), ...checks])
    if (this.#broken) {
      // the last connection to close copies the log and removes it, unless it is a reader: the log must be read anew at the next start
      this.#writer.close()
      this.#reader.close()
    } else {
      this.#reader.close()
      this.#writer.close()
    }
    await this.#walFile.close()
    await this.#dataFile.close()
  }

  async #pump(): Promise<void> {
    // transactions that arrive in the same turn of the event loop share the first commit
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#queue.length > 0) {
      if (this.#checkpoints.barrier) await this.#checkpoints.barrier
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
    const began = performance.now()
    try {
      await this.#writer.commit(this.#queue, group, () => this.#reader.hideCommit())
      if (group.wrote) await this.#syncLog(began, group)
      this.#reader.showCommit()
    } catch (error) {
      const fault = isSyncFailure(error) ? this.#break(error) : asFault(error)
      if (!this.#broken) this.#reader.showCommit()
      // when BEGIN itself failed, no transaction was taken and all waiting ones are rejected
      for (const waiting of group.taken.length > 0 ? group.taken : this.#queue.splice(0)) waiting.reject(fault)
      for (const { tx } of group.finished) tx.rolledBack()
      return
    }
    for (const { waiting, value, tx } of group.finished) {
      waiting.resolve(value)
      for (const listener of tx.listeners) setImmediate(() => this.#notify(listener))
    }
  }

  async #syncLog(began: number, { finished }: Group): Promise<void> {
    const written = performance.now()
    try {
      await this.#sync(this.#walFile)
    } catch (error) {
      throw this.#break(error)
    }
    const now = performance.now()
    this.#watch?.committed((now - began) / 1000, (now - written) / 1000, finished.length)
    this.#checkpoints.schedule()
  }

  /**
   * Stops all writing after a failed sync: the kernel may have dropped pages, and the content of the disk is unknown until
   * the next start reads it.
   */
  #break(error: unknown): Fault {
    if (this.#broken) return this.#broken
    this.#log.fatal({ err: error }, 'disk failed to store data: nothing more is stored until a restart')
    this.#broken = new Fault('internal_error', 'The disk failed while storing; the box must be restarted.', {
      code: 'storage_failed',
      cause: error,
    })
    return this.#broken
  }

  #notify(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#log.error({ err: error }, 'listener failed after a commit')
    }
  }
}
