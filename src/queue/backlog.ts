import { type Cursors, page } from '../store/page.ts'
import { notFound } from '../core/fault.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { type Database, type Reader, sql, type Sql } from '../store/database.ts'
import { type Attempt, attemptsOfRows, type QueuedDelivery } from './history.ts'

/** A delivery of any kind, as the operator sees it. */
export interface BacklogDelivery extends Omit<QueuedDelivery, 'attempts'> {
  seq: number
  kind: string
  lane: string
  attempts: number
  ended_at: string | null
  /** Why it ended before its last attempt. */
  reason: string | null
  /** The answer of the last finished attempt. */
  answer: string | null
}

/** A filter by state (`open`: waiting or running), kind and lane. */
interface BacklogFilter {
  state: QueuedDelivery['state'] | 'open' | 'all'
  kind?: string | undefined
  lane?: string | undefined
}

/** The open deliveries of one destination. */
export interface LaneBacklog {
  kind: string
  lane: string
  waiting: number
  running: number
  /** The time the oldest was enqueued, and that of the next attempt; null while all are running. */
  oldest: string
  next: string | null
}

const lastAnswer = sql`coalesce((SELECT answer FROM delivery_attempts
  WHERE delivery_seq = deliveries_queue.seq AND delivery_attempts.ended_at IS NOT NULL ORDER BY number DESC LIMIT 1), first_answer)`

const columns = sql`seq, id, kind, lane, load, state, attempts, due_at, created_at, ended_at, reason, ${lastAnswer} AS answer`

const octets = sql`octet_length(load) + coalesce(octet_length(${lastAnswer}), 0)`

type Row = Omit<BacklogDelivery, 'load'> & { load: string }

/** The deliveries of all lanes, newest first. */
export async function listBacklog(
  database: Database,
  cursors: Cursors,
  filter: BacklogFilter,
  paging: Pick<Paging, 'limit' | 'cursor' | 'offset'>,
): Promise<Page<BacklogDelivery>> {
  const { state, kind, lane } = filter
  // expressions: no index but that of the order, by which as many rows are read as the list allows
  const filters: Sql[] = []
  if (state === 'open') filters.push(sql`state || '' IN ('waiting', 'running')`)
  else if (state !== 'all') filters.push(sql`state || '' = ${state}`)
  if (kind !== undefined) filters.push(sql`kind || '' = ${kind}`)
  if (lane !== undefined) filters.push(sql`lane || '' = ${lane}`)
  return page<Row, BacklogDelivery>(database, cursors, paging, {
    name: `queue ${JSON.stringify({ state, kind, lane })}`,
    columns,
    from: sql`deliveries_queue`,
    account: undefined,
    where: sql`1 = 1`,
    filters,
    octets,
    present: read,
  })
}

/** One delivery with its attempts, oldest first. Throws Fault not_found. */
export async function findInBacklog(reader: Reader, id: string): Promise<BacklogDelivery & { history: Attempt[] }> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM deliveries_queue WHERE id = ${id}`)
  if (!row) throw notFound('delivery')
  return { ...read(row), history: (await attemptsOfRows(reader, [row.seq])).get(row.seq)! }
}

/** Waiting and running deliveries by destination, the largest number first. */
export function backlogByLane(reader: Pick<Reader, 'all'>): Promise<LaneBacklog[]> {
  return reader.all<LaneBacklog>(
    sql`SELECT kind, lane, count(*) FILTER (WHERE state = 'waiting') AS waiting,
        count(*) FILTER (WHERE state = 'running') AS running, min(created_at) AS oldest,
        min(CASE state WHEN 'waiting' THEN due_at END) AS next
      FROM (SELECT kind, lane, state, created_at, due_at FROM deliveries_queue WHERE state = 'waiting'
        UNION ALL SELECT kind, lane, state, created_at, due_at FROM deliveries_queue WHERE state = 'running') AS open
      GROUP BY kind, lane ORDER BY count(*) DESC, kind, lane`,
  )
}

function read(row: Row): BacklogDelivery {
  return { ...row, load: JSON.parse(row.load) as unknown }
}
