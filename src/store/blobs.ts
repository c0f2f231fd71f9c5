import { inflateRawSync } from 'node:zlib'
import type { Database, Reader, Transaction } from './database.ts'
import { sql } from './database.ts'

/** Octets as they are kept: deflated where that makes them smaller. */
export interface Packed {
  /** Octets before packing. */
  size: number
  sha256: Uint8Array | null
  deflated: boolean
  bytes: Uint8Array
}

/** Keeps octets in the caller's transaction; answers the blob's id. */
export async function keepBlob(tx: Transaction, packed: Packed): Promise<number> {
  const row = await tx.get<{ id: number }>(
    sql`INSERT INTO blobs (size, sha256, deflated, bytes) VALUES (${packed.size}, ${packed.sha256}, ${packed.deflated ? 1 : 0}, ${packed.bytes}) RETURNING id`,
  )
  return row!.id
}

/** The octets as they came; undefined when retention has removed them. */
export async function readBlob(database: Reader | Database, id: number): Promise<Buffer | undefined> {
  const row = await database.get<{ deflated: number; bytes: Uint8Array }>(sql`SELECT deflated, bytes FROM blobs WHERE id = ${id}`)
  return row && unpack(row.deflated === 1, row.bytes)
}

/** The octets of a packed row as they came. */
export function unpack(deflated: boolean, bytes: Uint8Array): Buffer {
  return deflated ? inflateRawSync(bytes) : Buffer.from(bytes)
}
