import { type Database, empty, join, raw, sql, type Sql } from './database.ts'

/** The rows of a list, and what leads to them. */
export interface Rows {
  columns: Sql
  from: Sql
  /** What an index leads to, and yields in order: no row of it is read and passed over. */
  where: Sql
  /** Conditions that may pass over any number of the rows that `where` yields. */
  filters?: readonly Sql[]
  /** The filters look into texts that others wrote: even a few rows may take long. */
  costly?: boolean
  /** The integer column that orders the list. */
  order: 'seq' | 'last_seq'
  ascending?: boolean
  /** The place after which it begins, in its order. */
  after?: number | undefined
  /** Whose read it is where it takes long; undefined for the box's own. */
  account: string | undefined
}

/** Rows that a list reads or passes over on the event loop. */
export const nearby = 300

/** A list that takes longer is given up, in milliseconds. */
export const timeout = 5000

/**
 * At most `limit` rows of a list, leaving out the first `offset`. This is the one rule for what lists may cost: on the event loop at most `nearby` rows are
 * read or passed over. A list that may need more than those is read beside it, in its account's turn; it may then hold what is committed and not
 * on disk yet. Throws Fault `too_slow`.
 */
export async function readRows<Row>(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  rows: Rows,
  limit: number,
  offset = 0,
): Promise<Row[]> {
  const { columns, from, where, filters = [], costly = false, ascending = false, account } = rows
  const order = raw(rows.order)
  const [onward, back] = ascending ? [sql`>`, sql`<`] : [sql`<`, sql`>`]
  const begun = rows.after === undefined ? where : sql`${where} AND ${order} ${onward} ${rows.after}`
  const ordered = sql`ORDER BY ${order}${ascending ? empty : sql` DESC`}`
  const select = (condition: Sql): Sql =>
    sql`SELECT ${columns} FROM ${from} WHERE ${condition} ${ordered} LIMIT ${limit} OFFSET ${offset}`
  const filtered = join([begun, ...filters.map((filter) => sql`(${filter})`)], ' AND ')
  if (!costly && offset <= nearby) {
    if (filters.length === 0 && offset + limit <= nearby) return database.all(select(begun))
    const end = await database.get<{ place: number }>(
      sql`SELECT ${order} AS place FROM ${from} WHERE ${begun} ${ordered} LIMIT 1 OFFSET ${nearby}`,
    )
    const found = await database.all<Row>(select(end ? sql`${filtered} AND ${order} ${back} ${end.place}` : filtered))
    if (!end || found.length === limit) return found
  }
  return database.slow(select(filtered), timeout, account)
}
