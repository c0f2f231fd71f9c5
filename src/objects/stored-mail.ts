import { sweep } from '../core/cron.ts'
import { type Database, sql } from '../store/database.ts'
import type { RawMessages } from './raw-messages.ts'

interface Deps {
  database: Database
  raw: RawMessages
  /** Bytes above which a raw message is an object. */
  above: number
}

/** Blobs that are looked at in one query, and milliseconds for it. */
const batch = { blobs: 10_000, deadline: 20_000 }

/**
 * Moves raw messages that are in the database into the store of objects if they are large: those from before the store was set, and of a restored backup.
 * Goes on where a former run stopped.
 */
export async function moveStoredMail(deps: Deps, signal?: AbortSignal): Promise<void> {
  const { database, above } = deps
  const newest = await database.get<{ id: number }>(sql`SELECT coalesce(max(id), 0) AS id FROM blobs`)
  await sweep(async () => {
    const row = await database.get<{ done: number; above: number }>(sql`SELECT done, above FROM moved_raw_mail WHERE id = 1`)
    const done = row && row.above <= above ? row.done : 0
    if (done >= newest!.id) return false
    const end = Math.min(done + batch.blobs, newest!.id)
    await moveSome(deps, done, end, signal)
    if (signal?.aborted) return false
    await database.transaction((tx) =>
      tx.run(sql`INSERT INTO moved_raw_mail (id, done, above) VALUES (1, ${end}, ${above})
        ON CONFLICT (id) DO UPDATE SET done = excluded.done, above = excluded.above`),
    )
    return true
  }, signal)
}

async function moveSome({ database, raw, above }: Deps, after: number, end: number, signal?: AbortSignal): Promise<void> {
  const rows = await database.slow<{ id: number; size: number }>(
    sql`SELECT id, size FROM blobs WHERE id > ${after} AND id <= ${end} AND size > ${above} AND object IS NULL AND octet_length(bytes) > 0
      AND (EXISTS (SELECT 1 FROM emails WHERE raw_id = blobs.id) OR EXISTS (SELECT 1 FROM emails_trash WHERE raw_id = blobs.id)) ORDER BY id`,
    batch.deadline,
  )
  for (const { id, size } of rows) {
    if (signal?.aborted) return
    await raw.move(id, size)
  }
}
