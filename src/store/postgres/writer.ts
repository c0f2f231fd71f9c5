import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Transaction } from '../database.ts'
import { stuck } from '../faults.ts'
import { Newer } from '../files.ts'
import type { CommitWatch } from '../metrics.ts'
import { type BoxLock, Held, locked, writerLocked } from './box-lock.ts'
import { type Connection, connect } from './connections.ts'
import { asFault, busy, driverFault, isConflict, isLost, unavailable, unsure } from './failures.ts'
import { requireVersion } from './prepare.ts'
import { PostgresTransaction } from './transaction.ts'
import type { PostgresTarget } from './target.ts'

/** Runs of one transaction before it is given up: each one after the first follows a conflict, or a connection that was lost before COMMIT. */
const maxRuns = 20

/** Milliseconds after which a statement without an answer is given up. */
const statementTimeout = 120_000

export interface WriterOptions {
  /** Milliseconds without a statement after which work is aborted. */
  timeout: number
  /** Runs all work twice. */
  twice: boolean
  /** Refuses to write where another process has the same schema open: any, or one that is alone. */
  lock: BoxLock
  /** True if several boxes can have the database open, of which this one may be `alone` for now. */
  several: boolean
  watch: CommitWatch | undefined
}

/** What a transaction returned, with its listeners. */
export interface Committed {
  value: unknown
  listeners: readonly (() => void)[]
  /** True if it added to the log of events. */
  appends: boolean
}

/** The lock of a table that is hardly ever written, before what the transaction reads: it sees what was committed until the lock was free. */
function turn(alone: boolean): string {
  return `LOCK TABLE operator_state IN ${alone ? 'EXCLUSIVE' : 'ROW SHARE'} MODE`
}

type Work = (tx: Transaction) => Promise<unknown>

/** One connection that writes, a transaction at a time. It is made when it is needed, and again after it was lost. */
export class Writer {
  readonly #target: PostgresTarget
  readonly #options: WriterOptions
  readonly #inside: AsyncLocalStorage<PostgresTransaction>
  readonly #name = randomUUID()
  #connection: Connection | undefined

  constructor(target: PostgresTarget, options: WriterOptions, inside: AsyncLocalStorage<PostgresTransaction>) {
    this.#target = target
    this.#options = options
    this.#inside = inside
  }

  /**
   * Runs the work in a transaction of its own, again after a conflict with others. Throws Fault `storage_unsure` when COMMIT has no answer: what
   * may be stored is never run again.
   */
  async commit(work: Work): Promise<Committed> {
    if (this.#options.twice) await this.#rehearse(work)
    for (let run = 1; ; run += 1) {
      try {
        return await this.#once(work, run > 1)
      } catch (error) {
        if (!(error instanceof Again)) throw asFault(error)
        if (run === maxRuns || (error.lost && run > 1)) throw error.lost ? unavailable(error.cause) : busy(error.cause)
        if (!error.lost && !this.#options.several) await sleep(Math.random() * Math.min(2 ** run, 64))
      }
    }
  }

  /** Makes the connection, with the lock of the box, and of this writer where it is not alone. */
  async connect(): Promise<Connection> {
    if (this.#connection) return this.#connection
    const session = {
      default_transaction_isolation: 'serializable',
      // what a box that is cut off has locked is free for others before long; one that is not has aborted it before
      idle_in_transaction_session_timeout: String(this.#options.timeout + 5000),
      // the lock of a connection that was cut is free before long
      tcp_keepalives_idle: '10',
      tcp_keepalives_interval: '5',
      tcp_keepalives_count: '3',
    }
    const connection = await connect(this.#target, { timeout: statementTimeout, session, pipeline: true })
    connection.on('end', () => this.#forget(connection))
    try {
      await this.#lock(connection)
    } catch (error) {
      await connection.end()
      throw error
    }
    return (this.#connection = connection)
  }

  async close(): Promise<void> {
    const connection = this.#connection
    this.#connection = undefined
    await connection?.end().catch(() => {})
  }

  async #lock(connection: Connection): Promise<void> {
    const { lock, several } = this.#options
    if (!(await locked(connection, lock))) throw new Held(this.#target, lock === 'alone' && several ? 'exclusive' : lock)
    if (lock === 'alone') return
    if (!(await writerLocked(connection, this.#name))) throw new Held(this.#target)
    // a newer program may have migrated it while this box had no connection
    if (several) await requireVersion(connection, this.#target)
  }

  async #once(work: Work, alone: boolean): Promise<Committed> {
    const connection = await this.connect().catch((error: unknown) => {
      throw error instanceof Held || error instanceof Newer ? unavailable(error) : driverFault(error)
    })
    const began = performance.now()
    const tx = this.#begin(connection, alone)
    let value: unknown
    try {
      value = await this.#run(tx, work)
      await tx.begun
      if (tx.failure) throw tx.failure.error
    } catch (error) {
      tx.end()
      await this.#rollBack(connection)
      tx.rolledBack()
      throw asAgain(tx.failure?.error) ?? error
    }
    tx.end()
    await this.#finish(connection, tx, began)
    return { value, listeners: tx.listeners, appends: tx.appends }
  }

  /**
   * Begins a transaction. One of several boxes holds a lock that all share, or that it has `alone` where others made it fail before. Else one box could
   * make another fail every time: it begins its next transaction as soon as it has committed one, while the other must first roll back.
   */
  #begin(connection: Connection, alone = false): PostgresTransaction {
    return new PostgresTransaction(connection, connection.query(this.#options.several ? `BEGIN; ${turn(alone)}` : 'BEGIN'))
  }

  /** Rejects when the work leaves the connection idle for too long. */
  #run(tx: PostgresTransaction, work: Work): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const { timeout } = this.#options
    let timer: NodeJS.Timeout | undefined
    tx.whenIdle = (idle) => {
      clearTimeout(timer)
      if (idle) timer = setTimeout(() => reject(stuck(timeout)), timeout)
    }
    this.#inside.run(tx, work, tx).then(resolve, reject)
    return promise.finally(() => {
      tx.whenIdle = () => {}
      clearTimeout(timer)
    })
  }

  async #finish(connection: Connection, tx: PostgresTransaction, began: number): Promise<void> {
    const finished = performance.now()
    try {
      await connection.query('COMMIT')
    } catch (error) {
      this.#drop(connection)
      tx.rolledBack()
      const conflict = isConflict(error) ? asAgain(error) : undefined
      if (conflict) throw conflict
      // without writes there is nothing that may be stored
      throw tx.writes > 0 && isLost(error) ? unsure(error) : driverFault(error)
    }
    const now = performance.now()
    if (tx.writes > 0) this.#options.watch?.committed((now - began) / 1000, (now - finished) / 1000, 1)
  }

  /** Runs the work and rolls it back, as after a conflict. */
  async #rehearse(work: Work): Promise<void> {
    const connection = await this.connect().catch(() => undefined)
    if (!connection) return
    const tx = this.#begin(connection)
    // whether the work fails is decided by its second run
    await this.#run(tx, work).catch(() => undefined)
    tx.end()
    await this.#rollBack(connection)
    tx.rolledBack()
  }

  async #rollBack(connection: Connection): Promise<void> {
    await connection.query('ROLLBACK').catch(() => this.#drop(connection))
  }

  #drop(connection: Connection): void {
    this.#forget(connection)
    void connection.end().catch(() => {})
  }

  #forget(connection: Connection): void {
    if (this.#connection === connection) this.#connection = undefined
  }
}

/** The transaction was rolled back and can run again: after a conflict, or because the connection was lost before COMMIT. */
class Again extends Error {
  readonly lost: boolean

  constructor(cause: unknown, lost: boolean) {
    super('The transaction can run again.', { cause })
    this.lost = lost
  }
}

function asAgain(error: unknown): Again | undefined {
  if (error === undefined) return undefined
  if (isConflict(error)) return new Again(error, false)
  return isLost(error) ? new Again(error, true) : undefined
}
