import { type Database, empty, join, raw, sql, type Sql } from './database.ts'

/** The query of a list. */
export interface Rows {
  /** All columns unless given. */
  columns?: Sql
  from: Sql
  /** A condition served in order by an index, so that no row is read and skipped. */
  where: Sql
  /** Further conditions, which may skip any number of the rows of `where`. */
  filters?: readonly Sql[]
  /** The filters search texts of any size: even a few rows may take long. */
  costly?: boolean
  /** The integer column that orders the list: `seq` unless given. */
  order?: 'seq' | 'last_seq'
  ascending?: boolean
  /** The position after which it begins, in its order. */
  after?: number | undefined
  /** The account of a slow read; undefined for the box itself. */
  account: string | undefined
}

/** Maximum rows that a list reads or skips on the event loop. */
const maxRowsInline = 300

/** The timeout of a list, in milliseconds. */
export const timeout = 5000

/**
 * At most `limit` rows of a list, skipping the first `offset`. This bounds the cost of all lists: on the event loop at most `maxRowsInline` rows are
 * read or skipped. A list that may need more is read in a thread, in the turn of its account; it may then include data that is committed and not
 * yet synced to disk. Throws Fault `too_slow`.
 */
export async function readRows<Row>(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  rows: Rows,
  limit: number,
  offset = 0,
): Promise<Row[]> {
  const { columns = sql`*`, from, where, filters = [], costly = false, ascending = false, account } = rows
  const order = raw(rows.order ?? 'seq')
  const [onward, back] = ascending ? [sql`>`, sql`<`] : [sql`<`, sql`>`]
  const last = ascending ? Number.MAX_SAFE_INTEGER : -1
  const begun = rows.after === undefined ? where : sql`${where} AND ${order} ${onward} ${rows.after}`
  const ordered = sql`ORDER BY ${order}${ascending ? empty : sql` DESC`}`
  const select = (condition: Sql): Sql =>
    sql`SELECT ${columns} FROM ${from} WHERE ${condition} ${ordered} LIMIT ${limit} OFFSET ${offset}`
  const filtered = join([begun, ...filters.map((filter) => sql`(${filter})`)], ' AND ')
  if (!costly && offset <= maxRowsInline) {
    if (filters.length === 0 && offset + limit <= maxRowsInline) return database.all(select(begun))
    // most rows usually pass the filters, so that a few are enough
    for (const window of new Set([Math.min(2 * (offset + limit), maxRowsInline), maxRowsInline])) {
      const end = sql`SELECT ${order} AS place FROM ${from} WHERE ${begun} ${ordered} LIMIT 1 OFFSET ${window}`
      const found = await database.all<Row>(select(sql`${filtered} AND ${order} ${back} coalesce((${end}), ${last})`))
      if (found.length === limit) return found
      // read again without the end: rows may have been deleted since
      if ((await database.get(end)) === undefined) return database.all<Row>(select(filtered))
    }
  }
  return database.slow(select(filtered), timeout, account)
}
