import { invalid } from '../core/fault.ts'
import { lruMapOfBytes } from '../core/memory.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { type Database, join, raw, sql, type Sql } from './database.ts'
import { readRows, type Rows } from './rows.ts'
import { mac, sameBytes } from '../core/seal/seal.ts'

/** Opaque positions in lists. A cursor is accepted only for the list it was issued for. */
export class Cursors {
  readonly #key: Buffer
  /** Those of the lists that are read again and again. */
  readonly #written = lruMapOfBytes<string>(256 * 1024, (_, of) => 300 + 2 * of.length)

  constructor(key: Buffer) {
    this.#key = key
  }

  /** `list` names the list and its filters; a cursor of another list or filter is refused. */
  write(list: string, position: number): string {
    const text = position.toString(36)
    const of = `${list}\n${text}`
    const known = this.#written.get(of)
    if (known !== undefined) return known
    const cursor = `${text}.${mac(this.#key, of).subarray(0, 9).toString('base64url')}`
    this.#written.set(of, cursor)
    return cursor
  }

  /** Throws Fault invalid_request, `param: cursor`, for a cursor this box did not issue for this list. */
  read(list: string, cursor: string): number {
    const position = Number.parseInt(cursor, 36)
    // compared as text: another text that decodes to the same bytes was not issued either
    if (!Number.isSafeInteger(position) || !sameBytes(Buffer.from(this.write(list, position)), Buffer.from(cursor))) {
      throw invalid('cursor', 'cursor must be the next_cursor of an earlier page of the same list.', 'bad_cursor')
    }
    return position
  }

  /** The position where a page starts; undefined without a cursor. Throws Fault as `read` does, and for an offset besides a cursor. */
  start(list: string, paging: Pick<Paging, 'cursor' | 'offset'>): number | undefined {
    requireOneWay(paging)
    return paging.cursor === undefined ? undefined : this.read(list, paging.cursor)
  }
}

/** Throws Fault for a page given by both a cursor and an offset. */
export function requireOneWay({ cursor, offset }: Pick<Paging, 'cursor' | 'offset'>): void {
  if (cursor !== undefined && offset > 0) throw invalid('offset', 'Send either cursor or offset, not both.')
}

/** One page of a list that is in memory. */
export function pageOf<Item>(cursors: Cursors, list: string, paging: Paging, all: readonly Item[]): Page<Item> {
  const start = cursors.start(list, paging) ?? paging.offset
  const end = start + paging.limit
  const has_more = end < all.length
  return { data: all.slice(start, end), has_more, next_cursor: has_more ? cursors.write(list, end) : null }
}

/** A paged list. The columns must include the order column under its own name. */
interface List<Row, Item> extends Omit<Rows, 'after'> {
  /** The name of the list with its filters; a cursor of another list is refused. */
  name: string
  /** The bytes of a row whose texts can be long, as SQL that does not read them (`octet_length`): such rows are then read only as far as they fit. */
  octets?: Sql
  present(row: Row): Item
}

/** Approximate maximum bytes of the rows of one response, which is serialized on the event loop. */
const maxBytes = 1024 * 1024

/** How many rows of these sizes in bytes fit into one response: at most `limit`, at least one. */
export function fitting(sizes: readonly number[], limit: number): number {
  const max = Math.min(limit, sizes.length)
  let sum = 0
  for (let count = 0; count < max; count += 1) {
    sum += sizes[count]!
    if (sum > maxBytes && count > 0) return count
  }
  return max
}

/** The total length of the texts in a row. */
function lengthOf(row: unknown): number {
  let length = 0
  // `Object.values` takes three times as long for the objects of SQLite
  for (const name in row as Record<string, unknown>) {
    const value = (row as Record<string, unknown>)[name]
    if (typeof value === 'string') length += value.length
  }
  return length
}

/** The rows of a list that fit into one response, which are not read yet: their `seq`, and their positions in its order. */
interface FittingRows {
  seqs: number[]
  places: number[]
  has_more: boolean
}

/** Reads only the sizes of rows, given by `octets`: all of them may be too large to be read together. */
export async function fittingRows(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  rows: Omit<Rows, 'columns'> & { octets: Sql },
  limit: number,
  offset = 0,
): Promise<FittingRows> {
  const columns = sql`seq, ${raw(rows.order ?? 'seq')} AS place, ${rows.octets} AS octets`
  const heads = await readRows<{ seq: number; place: number; octets: number }>(database, { ...rows, columns }, limit + 1, offset)
  const count = fitting(
    heads.map(({ octets }) => octets),
    limit,
  )
  const read = heads.slice(0, count)
  return { seqs: read.map(({ seq }) => seq), places: read.map(({ place }) => place), has_more: heads.length > count }
}

/** One page of a list, newest first unless `ascending`; large rows make it shorter. Throws Fault for a cursor of another list. */
export async function page<Row, Item>(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  cursors: Cursors,
  paging: Pick<Paging, 'limit' | 'cursor' | 'offset'>,
  list: List<Row, Item>,
): Promise<Page<Item>> {
  const { limit, offset } = paging
  const after = cursors.start(list.name, paging)
  const { rows, place } =
    list.octets === undefined
      ? await smallRows<Row>(database, { ...list, after }, limit, offset)
      : await largeRows<Row>(database, { ...list, octets: list.octets, after }, limit, offset)
  return {
    data: rows.map((row) => list.present(row)),
    has_more: place !== null,
    next_cursor: place === null ? null : cursors.write(list.name, place),
  }
}

/** The rows of a page, and the position of the last if there are more. */
interface PageRows<Row> {
  rows: Row[]
  place: number | null
}

async function smallRows<Row>(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  list: Rows,
  limit: number,
  offset: number,
): Promise<PageRows<Row>> {
  const rows = await readRows<Row>(database, list, limit + 1, offset)
  const fitted = fitting(rows.map(lengthOf), limit)
  const has_more = rows.length > fitted
  rows.length = fitted
  const last = rows.at(-1) as Record<string, number> | undefined
  return { rows, place: has_more ? last![list.order ?? 'seq']! : null }
}

async function largeRows<Row>(
  database: Pick<Database, 'all' | 'get' | 'slow'>,
  list: Rows & { octets: Sql },
  limit: number,
  offset: number,
): Promise<PageRows<Row>> {
  const { seqs, places, has_more } = await fittingRows(database, list, limit, offset)
  const rows = await rowsAt<Row & { seq: number }>(database, list, seqs)
  return { rows, place: has_more ? places.at(-1)! : null }
}

/** The rows at these positions, in their order; without those deleted meanwhile. */
export async function rowsAt<Row extends { seq: number }>(
  database: Pick<Database, 'all'>,
  { columns = sql`*`, from }: Pick<Rows, 'columns' | 'from'>,
  seqs: readonly number[],
): Promise<Row[]> {
  if (seqs.length === 0) return []
  const rows = await database.all<Row>(sql`SELECT ${columns} FROM ${from} WHERE seq IN (${join([...seqs])})`)
  const found = new Map(rows.map((row) => [row.seq, row]))
  return seqs.flatMap((seq) => found.get(seq) ?? [])
}
