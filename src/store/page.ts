import type { Cursors } from '../core/cursor.ts'
import { invalid } from '../core/fault.ts'
import type { Paging } from '../core/shapes.ts'
import type { Database } from './database.ts'
import { readRows, type Rows } from './rows.ts'

/** The columns must yield the order column under its own name. */
export interface List<Row, Item> extends Omit<Rows, 'after'> {
  /** Names the list and its filters: a cursor of another one is refused. */
  name: string
  present(row: Row): Item
}

/** Octets that the rows of one answer have together, about: who wrote them chose their size, and an answer is written on the event loop. */
const maxOctets = 1024 * 1024

/** How many of these rows, by their octets, one answer carries: at most `limit`, and always one. */
export function fitting(octets: readonly number[], limit: number): number {
  const most = Math.min(limit, octets.length)
  let sum = 0
  for (let count = 0; count < most; count += 1) {
    sum += octets[count]!
    if (sum > maxOctets && count > 0) return count
  }
  return most
}

/** The length of the texts in a row. */
export function lengthOf(row: unknown): number {
  let length = 0
  for (const value of Object.values(row as object)) if (typeof value === 'string') length += value.length
  return length
}

/** One page of a list, newest first unless it is chronological; rows that are large make it shorter. Throws Fault for a cursor that is not of this list. */
export async function page<Row, Item>(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  cursors: Cursors,
  paging: Pick<Paging, 'limit' | 'cursor' | 'offset'>,
  list: List<Row, Item>,
): Promise<{ data: Item[]; has_more: boolean; next_cursor: string | null }> {
  const { limit, cursor, offset } = paging
  if (cursor !== undefined && offset > 0) throw invalid('offset', 'Give either cursor or offset, not both.')
  const after = cursor === undefined ? undefined : cursors.read(list.name, cursor)
  const rows = await readRows<Row>(database, { ...list, after }, limit + 1, offset)
  const carried = fitting(rows.map(lengthOf), limit)
  const has_more = rows.length > carried
  rows.length = carried
  const last = rows.at(-1) as Record<string, number> | undefined
  return {
    data: rows.map((row) => list.present(row)),
    has_more,
    next_cursor: has_more ? cursors.write(list.name, last![list.order]!) : null,
  }
}
