import { inflateRawSync } from 'node:zlib'
import { release } from '../core/memory.ts'
import { separateTurn, Turns } from '../core/work/paced-work.ts'
import { type Database, type Reader, sql, type Transaction } from './database.ts'

/** Bytes as they are stored: deflated where that makes them smaller. */
interface PackedBlob {
  /** Bytes before deflating. */
  size: number
  sha256: Uint8Array | null
  deflated: boolean
  bytes: Uint8Array
  /** The blob with which it is deleted. */
  part_of?: number
  /** The object that has the bytes, in a store outside; the row has none then. */
  object?: string
}

/** Bytes of one row, which is in memory three times while it is written. */
export const pieceBytes = 1024 * 1024

/** Stores bytes in the caller's transaction, in several rows when they are large. Returns the id of the blob. */
export async function insertBlob(tx: Transaction, packed: PackedBlob): Promise<number> {
  const { bytes } = packed
  const id = await insertWhole(tx, { ...packed, bytes: bytes.subarray(0, pieceBytes) })
  const turns = new Turns()
  for (let place = 1; place * pieceBytes < bytes.length; place += 1) {
    if (turns.due) await turns.yield()
    const next = bytes.subarray(place * pieceBytes, (place + 1) * pieceBytes)
    await tx.run(sql`INSERT INTO blob_pieces (blob_id, place, bytes) VALUES (${id}, ${place}, ${next})`)
  }
  return id
}

/** The same in one row, for blobs that queries join: the bodies of e-mails and the long fields of events. */
export async function insertWhole(tx: Transaction, packed: PackedBlob): Promise<number> {
  const { size, sha256, deflated, bytes, part_of = null, object = null } = packed
  const row = await tx.get<{ id: number }>(
    sql`INSERT INTO blobs (size, sha256, deflated, bytes, part_of, object) VALUES (${size}, ${sha256}, ${deflated ? 1 : 0}, ${bytes}, ${part_of},
      ${object}) RETURNING id`,
  )
  return row!.id
}

/** Removes the bytes. The row stays, so that its id is not used again while something refers to it. */
export async function emptyBlob(tx: Transaction, id: number): Promise<void> {
  await tx.run(sql`UPDATE blobs SET bytes = ${new Uint8Array()}, deflated = 0, object = NULL WHERE id = ${id}`)
  await tx.run(sql`DELETE FROM blob_pieces WHERE blob_id = ${id}`)
}

/** The original bytes; undefined when there is no such blob. */
export async function readBlob(database: Reader | Database, id: number): Promise<Buffer | undefined> {
  const stored = await readStored(database, id)
  if (!stored) return undefined
  const bytes = inflate(stored.deflated, stored.bytes)
  if (stored.deflated && stored.bytes.length > pieceBytes) release(stored.bytes)
  return bytes
}

/** The bytes as they are stored, in one piece; undefined when there is no such blob. */
export async function readStored(
  database: Reader | Database,
  id: number,
): Promise<{ deflated: boolean; bytes: Uint8Array } | undefined> {
  const row = await database.get<{ deflated: number; bytes: Uint8Array }>(sql`SELECT deflated, bytes FROM blobs WHERE id = ${id}`)
  if (!row || row.bytes.length < pieceBytes) return row && { deflated: row.deflated === 1, bytes: row.bytes }
  const { rest } = (await database.get<{ rest: number }>(
    sql`SELECT coalesce(sum(octet_length(bytes)), 0) AS rest FROM blob_pieces WHERE blob_id = ${id}`,
  ))!
  const whole = Buffer.allocUnsafeSlow(row.bytes.length + rest)
  whole.set(row.bytes)
  let at = row.bytes.length
  release(row.bytes)
  for (let place = 1; at < whole.length; place += 1) {
    const next = await database.get<{ bytes: Uint8Array }>(
      sql`SELECT bytes FROM blob_pieces WHERE blob_id = ${id} AND place = ${place}`,
    )
    // purged meanwhile
    if (!next) return undefined
    whole.set(next.bytes, at)
    at += next.bytes.length
    release(next.bytes)
    // a transaction must not wait for anything but the database
    if ('transaction' in database) await separateTurn()
  }
  return { deflated: row.deflated === 1, bytes: whole }
}

/** Replaces the bytes by an object that has them. Returns false when the blob has none in the database any more. */
export async function replaceByObject(tx: Transaction, id: number, object: string): Promise<boolean> {
  const { changes } = await tx.run(
    sql`UPDATE blobs SET bytes = ${new Uint8Array()}, object = ${object} WHERE id = ${id} AND object IS NULL AND octet_length(bytes) > 0`,
  )
  if (changes > 0) await tx.run(sql`DELETE FROM blob_pieces WHERE blob_id = ${id}`)
  return changes > 0
}

/** The original bytes of a stored row. */
export function inflate(deflated: boolean, bytes: Uint8Array): Buffer {
  return deflated ? inflateRawSync(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
