import { Sql } from 'sql-template-tag'

export { empty, join, raw } from 'sql-template-tag'
export type { Sql } from 'sql-template-tag'

/** The cached texts of templates without nested SQL. */
const texts = new WeakMap<readonly string[], string>()

/**
 * SQL with its values as parameters; nested SQL is inlined. The text of a template without nested SQL is cached, as joining a long one takes
 * longer than many statements run.
 */
export function sql(template: readonly string[], ...values: readonly unknown[]): Sql {
  const query = new Sql(template, values)
  if (values.some((value) => value instanceof Sql)) return query
  let text = texts.get(template)
  if (text === undefined) texts.set(template, (text = query.sql))
  return Object.defineProperty(query, 'sql', { value: text })
}

/** The value of a column. JSON is text, flags are 0 and 1, times are ISO 8601 text. */
export type Value = string | number | bigint | null | Uint8Array

/** The engines. Statements are the same for both but in the full-text search. */
export type Engine = 'sqlite' | 'postgres'

export interface Reader {
  readonly engine: Engine
  all<Row>(query: Sql): Promise<Row[]>
  get<Row>(query: Sql): Promise<Row | undefined>
}

export interface Transaction extends Reader {
  /** How many statements ran that may have written. */
  readonly writes: number
  /** Returns how many rows changed. */
  run(query: Sql): Promise<{ changes: number }>
  /** Adds a listener that is called once the transaction is on disk; its errors do not reach the writer. */
  afterCommit(listener: () => void): void
  /** Adds a listener that is called when the transaction is rolled back, or nobody knows whether it was stored; it must not throw. */
  afterRollback(listener: () => void): void
}

/** What is recorded of some work in one of its transactions: both are on disk or neither is. */
export interface Recording {
  /** Called at the end of a transaction, with its result. Returns false to be called for the next one. */
  record: (tx: Transaction, result: unknown) => Promise<boolean>
  /** True once that transaction is on disk. */
  recorded: boolean
}

/** What a box tells the others on the same database of itself. */
export interface BoxReport {
  version: string
  /** A hash of each setting that has to be the same, by its name. */
  settings: Record<string, string>
}

/** A box on the same database, as the others know it; times are in milliseconds. */
export interface KnownBox {
  /** The machine and the data directory. */
  name: string
  /** True for this box. */
  own: boolean
  /** Since it was last seen. */
  since: number
  /** True once the others have taken it for ended although it has not said so: no more is known of it. */
  lost: boolean
  /** How far its clock is ahead of the server's; negative when it is behind. */
  ahead: number
  /** For how long its process did nothing lately, at least, and how long ago. */
  delay: { length: number; since: number } | undefined
  report: BoxReport | undefined
}

/** One run of a box, from when its database is opened until it is closed: what it has under way is its own until the run has ended. */
export interface Run {
  /** A new one after others have taken this run for ended. */
  readonly id: string
  /** The machine and the data directory, by which the other boxes know this one; empty on SQLite, where there is no other. */
  readonly name: string
  /** True if other boxes may run on the same database. */
  readonly shared: boolean
  /** False while others may take this run for ended: nothing may be under way. */
  readonly alive: boolean
  /** The condition that the run in a column has ended; null is one that has. True on SQLite, where this run is the only one. */
  ended(column: Sql): Sql
  /** True if this run does what has this name, which one living run does for all boxes, until it has ended. Throws when the server does not answer. */
  leads(name: string): Promise<boolean>
  /** The boxes on the database, this one among them. Throws when the server does not answer. */
  boxes(): Promise<KnownBox[]>
  /** Tells the others of this box; what was told before is replaced. */
  describe(report: BoxReport): void
  /** Lets another run do it from now on. */
  release(name: string): Promise<void>
  /** Adds a listener that is called when others may take this run for ended: what it has under way must stop. */
  onLost(listener: () => void): void
  /** Adds a listener that is called when other runs have ended, and when this one is alive again: it can take up what they had under way. */
  onEnded(listener: () => void): void
}

/** Kinds of what a box keeps in memory of the database. `redactions` is the data of events, `lanes` what is attempted of the queue. */
export type Cached =
  | 'keys'
  | 'sessions'
  | 'domains'
  | 'dkim_keys'
  | 'signing_keys'
  | 'redactions'
  | 'state'
  | 'certificates'
  | 'challenges'
  | 'lanes'

/** The tables that only several boxes use, in place of memory and files: they are in no copy, and a box that has the database alone empties them. */
export const tablesOfSeveral = [
  'operator_state',
  'export_pieces',
  'acme_files',
  'acme_challenges',
  'oauth_codes',
  'given_messages',
  'guesses',
  'failed_logins',
  'rate_uses',
  'cache_changes',
  'lost_boxes',
]

/** What a box has cached of rows that other boxes may change. Where there is no other, nothing is written or read for it. */
export interface Caches {
  /** False while changes by other boxes may not be known yet: what is cached must be read again. */
  readonly valid: boolean
  /** Has the other boxes drop what they have of this kind, once the transaction is on disk. */
  invalidate(tx: Transaction, kind: Cached): Promise<void>
  /**
   * Adds a listener that is called when another box has changed rows of this kind, and after `storage_unsure`, once the server has stored it or not.
   * Nothing is valid before it has resolved; when it rejects, it is called again.
   */
  onInvalid(kind: Cached, listener: () => void | Promise<void>): void
}

/** What one look at the log finds; `unplaced` if events are in it that have no position yet. */
export interface Polled {
  events: { seq: number; id: string }[]
  unplaced: boolean
}

/** A database server as a box sees it. */
export interface ServerReport {
  /** The program and its version. */
  program: string
  /** Why the database cannot be used, as the rest of a sentence about it; undefined when it can. */
  problem: string | undefined
  /** True if a transaction that asks for READ COMMITTED sees what is committed meanwhile; undefined while nothing can be committed. */
  readsCommitted: boolean | undefined
  /** The isolation of the box's transactions. */
  isolation: string
  /** False if nothing is synced to the disk of the server. */
  fsync: boolean
  /** `synchronous_commit` and `synchronous_standby_names`: what a COMMIT waits for. */
  commit: string
  synchronous: string
  /** The standbys that are connected, and which of them a COMMIT waits for; undefined where the user may not see it. */
  standbys: { name: string; synchronous: boolean }[] | undefined
  /** Open connections, and how many a user like the box's can have, by what limits them. */
  connections: { limit: string; used: number; max: number }[]
}

/**
 * The interface of database engines. Reads outside a transaction see only committed data. Values are always parameters.
 *
 * SQL is written in the subset that SQLite and PostgreSQL share, with these functions of SQLite, which the schema for PostgreSQL defines:
 * `instr`, `json`, `json_each` (of an array of texts, its column `value`), `json_extract` (which is always text there), `json_set`, `json_remove` and
 * `json_valid`. A condition that no index should serve is written with `column || ''`. SQLite's alone are the statements of `sqlite/`, of
 * `mail/search/full-text.ts` and of `ops/retention/search-index.ts`, and of what reads or writes a database file as a whole: here, in `copy/`, in
 * `mail/search/stored-words.ts`, in `ops/backup/` and in `audit/verify.ts`.
 */
export interface Database extends Reader {
  readonly run: Run
  /** True if several boxes may have the database open at the same time: they count together what one alone counts in memory. */
  readonly several: boolean
  /**
   * Runs the work and resolves when its writes are synced to disk. Work that throws is rolled back.
   * Only database calls may be awaited inside `work`: many transactions share one commit. Work that does not settle is aborted after a timeout.
   * Work may run again after a rollback, so it changes nothing outside of the transaction but by `afterCommit`, or what `afterRollback` takes back: the listeners
   * of the run that was committed, and of each that was rolled back, are called. It may read what is in memory, and log that it refuses.
   * Throws Fault `storage_full` when the disk is full, `storage_failed` when a sync failed, `stopping` after `close`; on PostgreSQL
   * `storage_unavailable` when the server is away, `storage_unsure` when it did not answer a COMMIT.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  /**
   * True if events get their position in the log when their transaction is committed, as others write at the same time: they are inserted with negative
   * numbers. `transaction` resolves when they have their positions.
   */
  readonly placesEvents: boolean
  /** Gives positions to all events that are committed, also by other boxes. Does nothing where they have them when they are inserted. */
  placeEvents(): Promise<void>
  /** The events that have positions after this one, at most `limit`, in their order. The same query finds what other boxes have changed of `caches`. */
  poll(after: number, limit: number): Promise<Polled>
  readonly caches: Caches
  /** Runs the work; `mark` is written in the first of its transactions that commits, so that both are on disk or neither is. */
  marking<T>(mark: (tx: Transaction) => Promise<unknown>, work: () => Promise<T>): Promise<T>
  /** Runs the work, and records it in the first of its transactions that wrote something and for which `record` returns true. */
  recording<T>(recording: Recording, work: () => Promise<T>): Promise<T>
  /**
   * Adds a listener that is called when a transaction threw `storage_unsure`, once the server has stored it or not.
   */
  onUnsure(listener: () => void): void
  /**
   * A read that may take long (search, export): off the event loop, aborted after `deadline` milliseconds with a Fault. Accounts take turns;
   * without an account the read is of the box itself.
   */
  slow<Row>(query: Sql, deadline: number, account?: string): Promise<Row[]>
  /**
   * The first damage that a new connection finds in the file (`PRAGMA quick_check`), or null, always on PostgreSQL; off the event loop. Throws Fault `too_slow` when
   * the check takes longer than `deadline` milliseconds.
   */
  damage(deadline: number): Promise<string | null>
  /** Looks at the database server, and waits until one transaction is written; null where there is none. */
  inspect(): Promise<ServerReport | null>
  /** Returns some free pages of the file to the disk. Returns whether there is more to reclaim. */
  reclaim(): Promise<boolean>
  /** Allocates so many bytes of the write-ahead log in advance, so that small writes still succeed on a full disk. */
  reserveLog(bytes: number): Promise<void>
  /** Bytes of the database on disk, with its log. */
  size(): Promise<number>
  /** Writes and syncs one row: throws when the store cannot be written now. */
  probe(): Promise<void>
  close(): Promise<void>
}

/** The parameters of a query. Throws for values that an engine would silently misread. */
export function parameters(query: Sql): Value[] {
  for (const value of query.values) {
    // SQLite would read an object in the first position as named parameters, and store NaN as NULL
    if (typeof value === 'object' ? value !== null && !(value instanceof Uint8Array) : Number.isNaN(value))
      throw new TypeError(`${String(value)} cannot be stored: only text, numbers, null and bytes can.`)
  }
  return query.values as Value[]
}
