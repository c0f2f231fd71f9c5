import { type Database, sql, type Sql } from '../store/database.ts'
import { timeout } from '../store/rows.ts'
import { eventSize } from './log.ts'

/**
 * Events that are looked through for one page, as there is no index by account: a few on the event loop, where those who follow the log find
 * all they want, and many in a thread, in the turn of the account.
 */
const windows = { inline: 300, beside: 100_000 }

/** Which part of the log is looked through: from `after`, which is not part of it, to its first event or up to `end`. */
interface Span {
  account_id: string
  types: Sql
  condition: Sql
  after: number
  end: number
  ascending: boolean
}

interface Head {
  seq: number
  octets: number
}

/** Positions and sizes of events of an account, at most `limit`, and how far the log was looked through; null: to its end. */
export async function scan(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  { account_id, types, condition, after, end, ascending }: Span,
  limit: number,
): Promise<{ heads: Head[]; reached: number | null }> {
  const heads: Head[] = []
  const order = ascending ? sql`seq` : sql`seq DESC`
  let reached = after
  for (const rows of [windows.inline, windows.beside]) {
    const beside = rows === windows.beside
    const read = <Row>(query: Sql): Promise<Row[]> => (beside ? database.slow(query, timeout, account_id) : database.all(query))
    const rest = ascending ? sql`seq > ${reached} AND seq <= ${end}` : sql`seq < ${reached} AND seq > 0`
    const [last] = await read<{ seq: number }>(
      sql`SELECT seq FROM events WHERE ${rest} ORDER BY ${order} LIMIT 1 OFFSET ${rows - 1}`,
    )
    const bound = last === undefined ? sql`1 = 1` : ascending ? sql`seq <= ${last.seq}` : sql`seq >= ${last.seq}`
    const found = await read<Head>(
      sql`SELECT seq, ${eventSize} AS octets FROM events WHERE ${rest} AND ${bound} AND account_id = ${account_id} AND ${types} AND ${condition}
        ORDER BY ${order} LIMIT ${limit - heads.length}`,
    )
    heads.push(...found)
    if (heads.length === limit) return { heads, reached: heads.at(-1)!.seq }
    if (last === undefined) return { heads, reached: null }
    reached = last.seq
  }
  return { heads, reached }
}
