import { inflateRawSync } from 'node:zlib'
import type { Database, Reader, Sql, Transaction } from './database.ts'
import { sql } from './database.ts'

/** Octets as they are kept: deflated where that makes them smaller. */
export interface Packed {
  /** Octets before packing. */
  size: number
  sha256: Uint8Array | null
  deflated: boolean
  bytes: Uint8Array
}

/** Octets from which a statement must not keep its copy of them. */
const large = 256 * 1024

/** Keeps octets in the caller's transaction; answers the blob's id. */
export async function keepBlob(tx: Transaction, packed: Packed): Promise<number> {
  const row = await tx.get<{ id: number }>(insertion(packed, true))
  // a statement has a copy of what it was given last until it is given something else
  if (packed.bytes.length >= large) await tx.get(insertion({ ...packed, bytes: new Uint8Array() }, false))
  return row!.id
}

/** Inserts nothing unless `meant`. */
function insertion({ size, sha256, deflated, bytes }: Packed, meant: boolean): Sql {
  return sql`INSERT INTO blobs (size, sha256, deflated, bytes)
    SELECT ${size}, ${sha256}, ${deflated ? 1 : 0}, ${bytes} WHERE ${meant ? 1 : 0} RETURNING id`
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
