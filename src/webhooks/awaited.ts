import { sql } from '../store/database.ts'
import type { Database } from '../store/database.ts'
import { kind } from './row.ts'
import type { Load } from './row.ts'

const page = 1000

/** A look that takes longer is given up, in milliseconds. */
const deadline = 60_000

/** The events that deliveries under way have yet to tell, however long ago they happened. */
export async function awaited(database: Pick<Database, 'slow'>): Promise<Set<string>> {
  const ids = new Set<string>()
  for (let seq = 0; ;) {
    const rows = await database.slow<{ seq: number; load: string }>(
      sql`SELECT seq, load FROM deliveries_queue WHERE kind = ${kind} AND state IN ('waiting', 'running') AND seq > ${seq}
        ORDER BY seq LIMIT ${page}`,
      deadline,
    )
    for (const { load } of rows) ids.add((JSON.parse(load) as Load).event_id)
    if (rows.length < page) return ids
    seq = rows.at(-1)!.seq
  }
}
