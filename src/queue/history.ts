import { type Cursors, page } from '../store/page.ts'
import { notFound } from '../core/fault.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { type Database, join, type Reader, sql } from '../store/database.ts'

/** An attempt; it is running while it has no outcome. */
export interface Attempt {
  number: number
  started_at: string
  ended_at: string | null
  outcome: 'done' | 'failed' | 'deferred' | 'interrupted' | null
  answer: string | null
}

/** The words of the API for outcomes. */
export const outcomes = { done: 'delivered', failed: 'failed', deferred: 'deferred', interrupted: 'interrupted' } as const

/** A delivery with its attempts, oldest first. */
export interface QueuedDelivery {
  id: string
  load: unknown
  state: 'waiting' | 'running' | 'done' | 'failed'
  due_at: string
  created_at: string
  attempts: Attempt[]
}

/** Bytes of one attempt in JSON, apart from its answer. */
const attemptOctets = 200

interface Row extends Omit<QueuedDelivery, 'load' | 'attempts'> {
  seq: number
  load: string
}

/** The deliveries of one lane, newest first. */
export async function listDeliveries(
  database: Database,
  cursors: Cursors,
  { kind, lane, account }: { kind: string; lane: string; account: string },
  paging: Pick<Paging, 'limit' | 'cursor' | 'offset'>,
): Promise<Page<QueuedDelivery>> {
  const list = await page<Row, Row>(database, cursors, paging, {
    name: `deliveries ${kind} ${lane}`,
    columns: sql`seq, id, load, state, due_at, created_at`,
    from: sql`deliveries_queue`,
    account,
    where: sql`kind = ${kind} AND lane = ${lane}`,
    octets: sql`octet_length(load) + ${attemptOctets} + coalesce(octet_length(first_answer), 0)
      + coalesce((SELECT sum(${attemptOctets} + coalesce(octet_length(answer), 0)) FROM delivery_attempts
      WHERE delivery_seq = deliveries_queue.seq), 0)`,
    present: (row) => row,
  })
  return { ...list, data: await withAttempts(database, list.data) }
}

/** One delivery of a lane; throws Fault not_found. */
export async function findDelivery(
  reader: Reader,
  { kind, lane }: { kind: string; lane: string },
  id: string,
): Promise<QueuedDelivery> {
  const row = await reader.get<Row>(
    sql`SELECT seq, id, load, state, due_at, created_at FROM deliveries_queue WHERE id = ${id} AND kind = ${kind} AND lane = ${lane}`,
  )
  if (!row) throw notFound('delivery')
  return (await withAttempts(reader, [row]))[0]!
}

/** The attempts of deliveries, by the delivery's id, oldest first. */
export async function attemptsOf(reader: Reader, ids: string[]): Promise<Map<string, Attempt[]>> {
  if (ids.length === 0) return new Map()
  const rows = await reader.all<{ seq: number; id: string }>(sql`SELECT seq, id FROM deliveries_queue WHERE id IN (${join(ids)})`)
  const attempts = await attemptsOfRows(
    reader,
    rows.map(({ seq }) => seq),
  )
  return new Map(rows.map(({ seq, id }) => [id, attempts.get(seq)!]))
}

/** The same by the number of the row, of each delivery. The first attempt is in the row of its delivery. */
export async function attemptsOfRows(reader: Reader, seqs: readonly number[]): Promise<Map<number, Attempt[]>> {
  if (seqs.length === 0) return new Map()
  const rows = await reader.all<Attempt & { delivery_seq: number }>(
    sql`SELECT seq AS delivery_seq, 1 AS number, first_started_at AS started_at, first_ended_at AS ended_at, first_outcome AS outcome,
        first_answer AS answer FROM deliveries_queue WHERE seq IN (${join([...seqs])}) AND first_started_at IS NOT NULL
      UNION ALL SELECT delivery_seq, number, started_at, ended_at, outcome, answer FROM delivery_attempts
        WHERE delivery_seq IN (${join([...seqs])}) ORDER BY delivery_seq, number`,
  )
  const attempts = new Map<number, Attempt[]>(seqs.map((seq) => [seq, []]))
  for (const { delivery_seq, ...attempt } of rows) attempts.get(delivery_seq)!.push(attempt)
  return attempts
}

async function withAttempts(reader: Reader, rows: Row[]): Promise<QueuedDelivery[]> {
  const attempts = await attemptsOfRows(
    reader,
    rows.map(({ seq }) => seq),
  )
  return rows.map((row) => ({ ...row, load: JSON.parse(row.load) as unknown, attempts: attempts.get(row.seq)! }))
}
