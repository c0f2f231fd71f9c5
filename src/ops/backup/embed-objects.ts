import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { BucketFailure } from '../../objects/bucket-failure.ts'
import { Bucket, type BucketSettings } from '../../objects/bucket.ts'
import { pieceBytes } from '../../store/blobs.ts'
import { refused, requireSpace } from './faults.ts'
import { value } from './snapshot.ts'

/** Where the raw mail of a copied database is that is not in it. */
interface ObjectSource {
  settings: BucketSettings | undefined
  /** True if the database that was copied still refers to an object. */
  refers: (object: string) => Promise<boolean>
}

interface Row {
  id: number
  object: string
  size: number
}

/** Objects that are read at the same time. */
const concurrent = 4

/** Puts raw mail that is in a store of objects into the copy of a database, which needs no store then. Throws Fault. */
export async function embedObjects(copy: string, source: ObjectSource, signal?: AbortSignal): Promise<void> {
  using database = new DatabaseSync(copy)
  if (!database.prepare(`SELECT 1 FROM pragma_table_info('blobs') WHERE name = 'object'`).get()) return
  const rows = database
    .prepare('SELECT id, object, size FROM blobs WHERE object IS NOT NULL ORDER BY id')
    .all() as unknown as Row[]
  // they are of the store, which the box that was copied goes on with
  database.exec('DELETE FROM unreferenced_objects; DELETE FROM moved_raw_mail')
  if (rows.length === 0) return
  if (!source.settings)
    throw refused(
      'Raw mail of this box is in a store of objects, and blobs.s3 is not set: set it as for the box. Nothing was backed up.',
      'storage_unavailable',
    )
  requireSpace(
    dirname(copy),
    rows.reduce((sum, { size }) => sum + size, 0),
    'with the raw mail in the store of objects ',
  )
  // a copy that is not completed is discarded: it needs no journal
  database.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF')
  const [bucket, write] = [new Bucket(source.settings), writer(database)]
  const waiting = rows.values()
  const readers = Array.from({ length: concurrent }, async () => {
    for (const row of waiting) {
      signal?.throwIfAborted()
      write(row.id, await bytesOf(row, bucket, source, signal))
    }
  })
  await Promise.all(readers)
  if (value(database, 'SELECT count(*) FROM blobs WHERE object IS NOT NULL') !== 0) throw new Error('objects were left out')
}

/** The bytes of an object; undefined for one that was purged since the database was copied. */
async function bytesOf(
  { object, size }: Row,
  bucket: Bucket,
  { refers }: ObjectSource,
  signal: AbortSignal | undefined,
): Promise<Buffer | undefined> {
  try {
    return await bucket.get(object, size, signal)
  } catch (error) {
    if (!(error instanceof BucketFailure)) throw error
    if (error.kind === 'missing' && !(await refers(object))) return undefined
    const message = `The raw mail in ${object} could not be read: ${error.message} Nothing was backed up.`
    throw refused(message, 'storage_unavailable', error)
  }
}

/** Writes the bytes of blobs; those without any are as if retention had deleted them. */
function writer(database: DatabaseSync): (id: number, bytes: Buffer | undefined) => void {
  const whole = database.prepare('UPDATE blobs SET bytes = ?, object = NULL WHERE id = ?')
  const further = database.prepare('INSERT INTO blob_pieces (blob_id, place, bytes) VALUES (?, ?, ?)')
  const emptied: StatementSync[] = [
    database.prepare(`UPDATE blobs SET bytes = x'', deflated = 0, object = NULL WHERE id = ?`),
    ...['emails', 'emails_trash'].map((table) =>
      database.prepare(`UPDATE ${table} SET raw_expired_at = coalesce(raw_expired_at, received_at) WHERE raw_id = ?`),
    ),
  ]
  return (id, bytes) => {
    if (!bytes) {
      for (const statement of emptied) statement.run(id)
      return
    }
    whole.run(bytes.subarray(0, pieceBytes), id)
    for (let place = 1; place * pieceBytes < bytes.length; place += 1)
      further.run(id, place, bytes.subarray(place * pieceBytes, (place + 1) * pieceBytes))
  }
}
