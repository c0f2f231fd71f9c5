import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'
import { type Clock, hour } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { release } from '../core/memory.ts'
import { emptyBlob, insertBlob, readBlob, readStored, replaceByObject } from '../store/blobs.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'
import { BucketFailure } from './bucket-failure.ts'
import type { ObjectStore } from './object-store.ts'

/** A raw message as it is stored. */
interface PackedMessage {
  /** Bytes before deflating. */
  size: number
  sha256: Uint8Array
  deflated: boolean
  bytes: Uint8Array
}

interface Deps {
  database: Database
  clock: Clock
  /** Undefined where all raw messages are in the database. */
  objects: ObjectStore | undefined
}

/** Milliseconds after which an object that was written for a transaction is deleted if none refers to it: far longer than a transaction takes. */
const safeAge = hour

/** Raw messages: in the database, or as objects of a store outside when they are large. */
export class RawMessages {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** True if a message of so many bytes is stored as an object. */
  isObject(size: number): boolean {
    return size > (this.#deps.objects?.above ?? Infinity)
  }

  /**
   * Writes a large message to the store of objects, before the transaction that inserts it; returns the name of its object, undefined for a message that
   * the database gets. Throws Fault `storage_unavailable`.
   */
  async upload({ size, deflated, bytes }: Omit<PackedMessage, 'sha256'>): Promise<string | undefined> {
    const { objects, database, clock } = this.#deps
    if (!objects || !this.isObject(size)) return undefined
    const object = `${objects.prefix}${randomUUID()}.eml${deflated ? '.deflate' : ''}`
    // on disk first: whatever happens from here on, it is referred to or deleted
    await database.transaction((tx) =>
      tx.run(sql`INSERT INTO unreferenced_objects (object, delete_after) VALUES (${object}, ${clock.now() + safeAge})`),
    )
    await objects.put(object, bytes)
    return object
  }

  /** Inserts a message, of which the store of objects has `object` if it was uploaded. Returns the id of its blob. */
  async insert(tx: Transaction, message: PackedMessage, object: string | undefined): Promise<number> {
    if (object === undefined) return insertBlob(tx, message)
    await refer(tx, object)
    return insertBlob(tx, { ...message, bytes: new Uint8Array(), object })
  }

  /** The original bytes; undefined when there is no such blob. Throws Fault `storage_unavailable`. */
  async read(id: number): Promise<Buffer | undefined> {
    const { database, objects } = this.#deps
    if (!objects) return readBlob(database, id)
    const stored = await this.#stored(id)
    if (stored?.object == null) return stored && readBlob(database, id)
    try {
      return await original(stored, await objects.get(stored.object, stored.size))
    } catch (error) {
      const again = error instanceof BucketFailure && error.kind === 'missing' ? await this.#stored(id) : stored
      // purged meanwhile
      if (again?.object !== stored.object) return again && readBlob(database, id)
      throw error instanceof BucketFailure ? objects.unreadable(stored.object, error) : error
    }
  }

  /** Deletes a message; its object after the commit. */
  async delete(tx: Transaction, id: number): Promise<void> {
    const row = await tx.get<{ object: string | null }>(sql`DELETE FROM blobs WHERE id = ${id} RETURNING object`)
    await this.#leave(tx, row?.object)
  }

  /** Deletes the bytes of a message, and keeps its number. */
  async empty(tx: Transaction, id: number): Promise<void> {
    const row = await tx.get<{ object: string | null }>(sql`SELECT object FROM blobs WHERE id = ${id}`)
    await emptyBlob(tx, id)
    await this.#leave(tx, row?.object)
  }

  /** Makes the bytes of a blob an object. Returns false when it is gone. Throws Fault `storage_unavailable`. */
  async move(id: number, size: number): Promise<boolean> {
    const { database } = this.#deps
    const stored = await readStored(database, id)
    if (!stored || stored.bytes.length === 0) return false
    const object = await this.upload({ ...stored, size })
    release(stored.bytes)
    return (
      object !== undefined &&
      database.transaction(async (tx) => {
        const moved = await replaceByObject(tx, id, object)
        if (moved) await refer(tx, object)
        return moved
      })
    )
  }

  async #leave(tx: Transaction, object: string | null | undefined): Promise<void> {
    if (object == null) return
    const { clock, objects } = this.#deps
    await tx.run(sql`INSERT INTO unreferenced_objects (object, delete_after) VALUES (${object}, ${clock.now()})`)
    tx.afterCommit(() => objects?.sweepSoon())
  }

  #stored(id: number): Promise<StoredObject | undefined> {
    return this.#deps.database.get<StoredObject>(sql`SELECT object, size, sha256, deflated FROM blobs WHERE id = ${id}`)
  }
}

interface StoredObject {
  object: string | null
  size: number
  sha256: Uint8Array
  deflated: number
}

const inflated = promisify(inflateRaw)

/** The message in an object. Throws BucketFailure when it is not what was stored. */
async function original({ size, sha256, deflated, object }: StoredObject, bytes: Buffer): Promise<Buffer> {
  const damaged = (cause?: unknown): BucketFailure =>
    new BucketFailure('damaged', `The object ${object} is not what was stored.`, cause)
  // a small object could fill the memory
  const message =
    deflated === 1
      ? await inflated(bytes, { maxOutputLength: Math.max(size, 1), chunkSize: 256 * 1024 }).catch((error: unknown) => {
          throw damaged(error)
        })
      : bytes
  if (message !== bytes) release(bytes)
  const digest = await crypto.subtle.digest('SHA-256', message)
  if (message.length !== size || !Buffer.from(sha256).equals(Buffer.from(digest))) throw damaged()
  return message
}

/** Notes that a blob refers to an object from now on. Throws Fault where it is being deleted. */
async function refer(tx: Transaction, object: string): Promise<void> {
  const { changes } = await tx.run(sql`DELETE FROM unreferenced_objects WHERE object = ${object} AND claimed = 0`)
  if (changes > 0) return
  throw new Fault('internal_error', 'The message took too long to be stored. Try again later.', {
    code: 'storage_unavailable',
    retryAfter: 5,
  })
}
