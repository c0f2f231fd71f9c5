import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import {
  type Database,
  parameters,
  type Polled,
  type Recording,
  type ServerReport,
  type Sql,
  sql,
  type Transaction,
} from '../database.ts'
import { nested, stopping } from '../faults.ts'
import { Marks, type WaitingTransaction } from '../marks.ts'
import type { CommitWatch } from '../metrics.ts'
import { SlowReads } from '../slow-reads.ts'
import { OwnCaches, SharedCaches } from './caches.ts'
import { type Connections, openPool } from './connections.ts'
import { EventOrder } from './event-order.ts'
import { Availability, driverFault } from './failures.ts'
import { Heartbeat, type HeartbeatTimes } from './heartbeat.ts'
import { inspectServer } from './inspect.ts'
import { Poll } from './poll.ts'
import { SlowConnection } from './slow-connection.ts'
import { statement } from './statements.ts'
import type { PostgresTransaction } from './transaction.ts'
import { describeTarget, type PostgresTarget } from './target.ts'
import { type Committed, Writer } from './writer.ts'

export interface PostgresOptions {
  /** Milliseconds without a statement after which work that does not settle is aborted: a bug that must not stop the whole box. */
  timeout?: number
  watch?: CommitWatch | undefined
  /** Runs the work of every transaction twice, and keeps the second run. */
  twice?: boolean | undefined
  /** Transactions that run at once; with more than one, events get their positions after them. */
  writers?: number
  /** Lets other boxes use the same database (docs/decisions/0036-runs-of-boxes.md). */
  shared?: boolean | undefined
  /** Opens it only where no other box is on it, and keeps others away: for what changes the database as a whole. */
  exclusive?: boolean | undefined
  /** Names the locked data directory (`Heartbeat`). */
  directory?: string | undefined
  /** The machine and the data directory, as the boxes on the database are named to people. */
  name?: string | undefined
  /** The clock of the box, which is compared with that of the server. */
  clock?: Clock | undefined
  heartbeat?: HeartbeatTimes | undefined
}

/** Connections for short reads. */
const readers = 6

/** Milliseconds after which a short read without an answer is given up. */
const readTimeout = 30_000

/** The engine on a server of PostgreSQL: each transaction is SERIALIZABLE with its own COMMIT, and runs again after a conflict. */
export class PostgresDatabase implements Database {
  readonly engine = 'postgres'
  readonly run: Heartbeat
  readonly several: boolean
  readonly placesEvents: boolean
  readonly caches: OwnCaches | SharedCaches
  readonly #log: Log
  readonly #availability: Availability
  readonly #readers: Connections
  readonly #writers: readonly Writer[]
  readonly #free: Writer[]
  readonly #slowReads: SlowReads
  readonly #marks = new Marks()
  readonly #inside = new AsyncLocalStorage<PostgresTransaction>()
  readonly #queue: WaitingTransaction[] = []
  readonly #order: EventOrder
  readonly #poll: Poll
  readonly #unsure = new Set<() => void>()
  #whenDone: (() => void) | undefined
  #closing: Promise<void> | undefined
  #closed = false

  /** Opens a database (checked and migrated before by `preparePostgres()`). Throws `Held` when another process writes to it. */
  static async open(target: PostgresTarget, log: Log, options: PostgresOptions = {}): Promise<PostgresDatabase> {
    const database = new PostgresDatabase(target, log, options)
    try {
      await database.#writers[0]!.connect()
      await database.run.begin()
      // what other boxes have left without a position
      await database.#order.place()
      const { caches } = database
      if (caches instanceof SharedCaches) await database.transaction((tx) => caches.removeOld(tx))
      if (!database.placesEvents) await database.#order.close()
      else if (!(await database.#readsCommitted())) throw new Error(notCommitted(target))
      return database
    } catch (error) {
      await database.close()
      throw error
    }
  }

  private constructor(
    target: PostgresTarget,
    log: Log,
    {
      timeout = 10_000,
      watch,
      twice = false,
      writers = 1,
      shared = false,
      exclusive = false,
      directory,
      name,
      clock,
      heartbeat,
    }: PostgresOptions,
  ) {
    this.#log = log
    this.run = new Heartbeat({ target, log, times: heartbeat, directory, name, clock })
    this.several = shared
    this.placesEvents = shared || writers > 1
    this.caches = shared ? new SharedCaches(this.run) : new OwnCaches()
    this.#order = new EventOrder(target)
    this.#poll = new Poll(target)
    this.#availability = new Availability(describeTarget(target), log)
    this.#readers = openPool(target, readers, { timeout: readTimeout, session: { default_transaction_read_only: 'on' } })
    const alone = exclusive || (writers === 1 && !shared)
    const options = { timeout, twice, watch, lock: alone ? ('alone' as const) : ('shared' as const), several: shared }
    this.#writers = Array.from({ length: writers }, () => new Writer(target, options, this.#inside))
    this.#free = [...this.#writers]
    this.#slowReads = new SlowReads(() => new SlowConnection(target))
  }

  async all<Row>(query: Sql): Promise<Row[]> {
    const { writes: _writes, appends: _appends, ...prepared } = statement(query)
    if (this.#closed) throw stopping()
    try {
      const { rows } = await this.#readers.query(prepared)
      this.#availability.note()
      return rows as Row[]
    } catch (error) {
      throw this.#availability.note(this.#closed ? stopping() : driverFault(error))
    }
  }

  async get<Row>(query: Sql): Promise<Row | undefined> {
    return (await this.all<Row>(query))[0]
  }

  slow<Row>(query: Sql, deadline: number, account = ''): Promise<Row[]> {
    return this.#slowReads.read<Row>({ account, text: query.sql, values: parameters(query), deadline })
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(stopping())
    if (this.#inside.getStore()?.open) return Promise.reject(nested())
    return new Promise<T>((resolve, reject) => {
      this.#queue.push(this.#marks.add({ work, resolve: resolve as (value: unknown) => void, reject }))
      this.#marks.outside(() => this.#inside.exit(() => this.#next()))
    })
  }

  onUnsure(listener: () => void): void {
    this.#unsure.add(listener)
  }

  marking<T>(mark: (tx: Transaction) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
    return this.#marks.marking(mark, work)
  }

  recording<T>(recording: Recording, work: () => Promise<T>): Promise<T> {
    return this.#marks.recording(recording, work)
  }

  placeEvents(): Promise<void> {
    return this.placesEvents ? this.#order.place() : Promise.resolve()
  }

  async poll(after: number, limit: number): Promise<Polled> {
    if (!(this.caches instanceof SharedCaches)) {
      const events = await this.all<Polled['events'][number]>(
        sql`SELECT seq, id FROM events WHERE seq > ${after} ORDER BY seq LIMIT ${limit}`,
      )
      return { events, unplaced: (await this.get(sql`SELECT 1 FROM events WHERE seq < 0 LIMIT 1`)) !== undefined }
    }
    const { events, unplaced, began, changes } = await this.#look(after, limit)
    await this.caches.note(began, changes)
    return { events, unplaced }
  }

  /** Looks at the server. */
  async inspect(): Promise<ServerReport> {
    try {
      return await inspectServer(this, () => this.#readsCommitted())
    } finally {
      if (!this.placesEvents) await this.#order.close()
    }
  }

  /** The server checks its own pages, if it was made with checksums; a client sees no damage before it reads it. */
  async damage(): Promise<null> {
    if (this.#closing) throw stopping()
    return null
  }

  /** The server reclaims space by itself (autovacuum). */
  async reclaim(): Promise<boolean> {
    return false
  }

  /** The log of the server is not on the disk of the box. */
  async reserveLog(): Promise<void> {}

  async size(): Promise<number> {
    const found = await this.get<{ size: number }>(sql`SELECT pg_database_size(current_database()) AS size`)
    return found!.size
  }

  async probe(): Promise<void> {
    await this.transaction((tx) => tx.run(sql`UPDATE box SET probed = probed + 1`))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#queue.length > 0 || this.#free.length < this.#writers.length)
      await new Promise<void>((resolve) => (this.#whenDone = resolve))
    await Promise.all([this.#slowReads.stop(), ...this.#writers.map((writer) => writer.close())])
    await Promise.all([this.#order.close(), this.run.end()])
    this.#closed = true
    await Promise.all([this.#readers.end(), this.#poll.close()])
  }

  async #look(after: number, limit: number): ReturnType<Poll['look']> {
    if (this.#closed) throw stopping()
    try {
      const found = await this.#poll.look(after, limit)
      this.#availability.note()
      return found
    } catch (error) {
      throw this.#availability.note(this.#closed ? stopping() : driverFault(error))
    }
  }

  #readsCommitted(): Promise<boolean> {
    return this.#order.readsCommitted(() => this.probe())
  }

  #next(): void {
    while (this.#free.length > 0) {
      const waiting = this.#queue.shift()
      if (!waiting) break
      void this.#run(this.#free.shift()!, waiting)
    }
    if (this.#free.length === this.#writers.length) this.#whenDone?.()
  }

  async #run(writer: Writer, { work, resolve, reject }: WaitingTransaction): Promise<void> {
    try {
      const committed = await writer.commit(work)
      this.#availability.note()
      void this.#resolve(committed, resolve)
    } catch (error) {
      reject(this.#availability.note(error))
      if (error instanceof Fault && error.code === 'storage_unsure') void this.#afterUnsure()
    }
    // a connection that was used is used before one that is not made yet
    this.#free.unshift(writer)
    this.#next()
  }

  /** Resolves a transaction when its events have their positions; others can run meanwhile. */
  async #resolve({ value, listeners, appends }: Committed, resolve: WaitingTransaction['resolve']): Promise<void> {
    if (appends && this.placesEvents) await this.#order.place()
    resolve(value)
    for (const listener of listeners) setImmediate(() => this.#notify(listener))
  }

  /** The connection that follows has the lock of the box: the former one has ended, and its COMMIT with it. */
  async #afterUnsure(): Promise<void> {
    while (!this.#closing) {
      try {
        await this.transaction((tx) => tx.get(sql`SELECT 1`))
        await this.caches.dropAll()
        for (const listener of this.#unsure) this.#notify(listener)
        return
      } catch {
        await sleep(1000, undefined, { ref: false })
      }
    }
  }

  #notify(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#log.error({ err: error }, 'listener failed after a commit')
    }
  }
}

function notCommitted(target: PostgresTarget): string {
  return (
    `Several boxes cannot use ${describeTarget(target)}: its transactions in READ COMMITTED do not see what is committed meanwhile, and mail would be ` +
    'missed. Let the server give them that isolation (YugabyteDB: yb_enable_read_committed_isolation), without a pooler that changes it.'
  )
}
