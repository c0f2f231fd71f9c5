import { Sql } from 'sql-template-tag'

export { empty, join, raw } from 'sql-template-tag'
export type { Sql } from 'sql-template-tag'

/** The texts of templates in which no other SQL is nested. */
const texts = new WeakMap<readonly string[], string>()

/**
 * SQL with its values as parameters; what is itself SQL is nested. The text is put together once for each template without any nested: a long one takes
 * longer than many a statement runs.
 */
export function sql(template: readonly string[], ...values: readonly unknown[]): Sql {
  const query = new Sql(template, values)
  if (values.some((value) => value instanceof Sql)) return query
  let text = texts.get(template)
  if (text === undefined) texts.set(template, (text = query.sql))
  return Object.defineProperty(query, 'sql', { value: text })
}

/** What a column can hold. JSON is text, flags are 0 and 1, times are ISO 8601 text. */
export type Value = string | number | bigint | null | Uint8Array

export interface Reader {
  all<Row>(query: Sql): Promise<Row[]>
  get<Row>(query: Sql): Promise<Row | undefined>
}

export interface Transaction extends Reader {
  /** Answers how many rows changed. */
  run(query: Sql): Promise<{ changes: number }>
  /** Called on a fresh stack once the transaction is on disk; its failure is never the writer's. */
  afterCommit(listener: () => void): void
}

/**
 * The same for every engine. Reads outside a transaction see only what is committed.
 * SQL is written once in the subset the engines share; values can only travel as parameters.
 */
export interface Database extends Reader {
  /**
   * Runs the work, and resolves only when what it wrote is forced to disk. Work that throws leaves nothing behind.
   * Nothing but database calls may be awaited inside `work`: many transactions share one commit. Work that never settles is given up.
   * Throws Fault `storage_full` when the disk is full, `storage_failed` when the disk lost its word, `stopping` after `close`.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  /** Runs the work; `mark` is written in the first of its transactions that commits, so that the one is on disk exactly when the other is. */
  marking<T>(mark: (tx: Transaction) => Promise<unknown>, work: () => Promise<T>): Promise<T>
  /**
   * A read that may take long (search, export): off the event loop, given up after `deadline` milliseconds with a Fault. Accounts take turns;
   * without an account it is the box's own.
   */
  slow<Row>(query: Sql, deadline: number, account?: string): Promise<Row[]>
  /**
   * The first damage that a new connection finds in the file (`PRAGMA quick_check`), or null; off the event loop. Throws Fault `too_slow` when
   * it is not read whole within `deadline` milliseconds.
   */
  damage(deadline: number): Promise<string | null>
  /** Gives a little of the room that deleted rows left back to the disk. Answers whether there is more worth giving back. */
  reclaim(): Promise<boolean>
  /** Makes so many bytes of the write-ahead log free to be written, so that little things can be when the disk has nothing left. */
  reserveLog(bytes: number): Promise<void>
  /** Writes and syncs one probe row: throws when the store cannot take mail now. */
  probe(): Promise<void>
  close(): Promise<void>
}
