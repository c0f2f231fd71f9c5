import type { Sql, Transaction } from '../database.ts'
import type { Connection } from './connections.ts'
import { driverFault } from './failures.ts'
import { type Statement, statement } from './statements.ts'

/** A transaction of one connection; it throws once its work has ended. */
export class PostgresTransaction implements Transaction {
  readonly engine = 'postgres'
  readonly listeners: (() => void)[] = []
  readonly #onRollback: (() => void)[] = []
  /** Called when no statement runs any more, and when one runs again. */
  whenIdle: (idle: boolean) => void = () => {}
  /** Resolves when BEGIN is answered; it never rejects. */
  readonly begun: Promise<void>
  readonly #connection: Connection
  /** BEGIN is the first. */
  #running = 1
  #open = true
  #writes = 0
  #appends = false
  #failure: { error: unknown } | undefined

  /** The first statements may be sent before BEGIN is answered. */
  constructor(connection: Connection, begun: Promise<unknown>) {
    this.#connection = connection
    this.begun = begun
      .then(
        () => undefined,
        (error: unknown) => void (this.#failure ??= { error }),
      )
      .finally(() => this.#ended())
  }

  get open(): boolean {
    return this.#open
  }

  get writes(): number {
    return this.#writes
  }

  /** True if it added to the log of events. */
  get appends(): boolean {
    return this.#appends
  }

  /** The first error of a statement, after which the server takes no other, even when the work caught it. */
  get failure(): { error: unknown } | undefined {
    return this.#failure
  }

  async all<Row>(query: Sql): Promise<Row[]> {
    return (await this.#step(query)).rows as Row[]
  }

  async get<Row>(query: Sql): Promise<Row | undefined> {
    return (await this.#step(query)).rows[0] as Row | undefined
  }

  async run(query: Sql): Promise<{ changes: number }> {
    return { changes: (await this.#step(query)).rowCount ?? 0 }
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

  async #step(query: Sql): Promise<{ rows: unknown[]; rowCount: number | null }> {
    this.#mustBeOpen()
    const { writes, appends, ...prepared } = statement(query)
    if (appends) this.#appends = true
    if (writes) await this.#mayWrite()
    return await this.#answered(prepared)
  }

  /** Counts a statement that writes; without BEGIN it would be committed alone. */
  async #mayWrite(): Promise<void> {
    this.#writes += 1
    await this.begun
    this.#mustBeOpen()
    if (this.#failure) throw driverFault(this.#failure.error)
  }

  async #answered(prepared: Statement): Promise<{ rows: unknown[]; rowCount: number | null }> {
    this.#running += 1
    this.whenIdle(false)
    try {
      return await this.#connection.query(prepared)
    } catch (error) {
      const fault = driverFault(error)
      this.#failure ??= { error }
      throw fault
    } finally {
      this.#ended()
    }
  }

  #ended(): void {
    this.#running -= 1
    if (this.#running === 0) this.whenIdle(true)
  }

  #mustBeOpen(): void {
    if (!this.#open) throw new Error('A transaction was used after its work had ended.')
  }
}
