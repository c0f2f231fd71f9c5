import { type Clock, iso } from '../../core/clock.ts'
import { sweep } from '../../core/cron.ts'
import { type Database, sql, type Sql, type Transaction } from '../../store/database.ts'

/** Stores one kind of deleted items. */
export interface Keeper {
  kind: string
  /** Deletes an item permanently, in the transaction that removes it from the trash. */
  purge(tx: Transaction, id: string): Promise<void>
  /** Deletes a batch of the items of a deleted identity, in the trash or not. Returns whether there may be more. */
  clear(tx: Transaction, identityId: string): Promise<boolean>
}

/** An item in the trash. */
export interface TrashItem {
  id: string
  kind: string
  account_id: string
  identity_id: string
  /** Bytes of the account's quota that it uses until it is purged. */
  octets: number
}

type Entry = Pick<TrashItem, 'id' | 'kind' | 'octets'>

/** Of an identity, or of all identities of an account. */
type Whose = { identity_id: string } | { account_id: string }

/** The most items purged in one transaction, and their bytes, so that it does not block the event loop. */
const batchLimit = { things: 16, octets: 4 * 1024 * 1024 }

/** Deleted items that can be restored for a time. They count against the quota, and are purged when it is exceeded. */
export class Trash {
  readonly #database: Database
  readonly #clock: Clock
  readonly #keepers = new Map<string, Keeper>()
  #time: number

  constructor(parts: { database: Database; clock: Clock; time: number }) {
    this.#database = parts.database
    this.#clock = parts.clock
    this.#time = parts.time
  }

  /** Registers a kind of items, before the first call. */
  add(keeper: Keeper): void {
    this.#keepers.set(keeper.kind, keeper)
  }

  get keepers(): Keeper[] {
    return [...this.#keepers.values()]
  }

  /** Sets the retention in milliseconds; 0: items are purged immediately. */
  reload(time: number): void {
    this.#time = time
  }

  /** The retention in milliseconds. */
  get time(): number {
    return this.#time
  }

  /** The current time for a deleted item. */
  now(): string {
    return iso(this.#clock.now())
  }

  async put(tx: Transaction, { id, kind, account_id, identity_id, octets }: TrashItem): Promise<void> {
    await tx.run(
      sql`INSERT INTO trash (id, kind, account_id, identity_id, octets, deleted_at)
        VALUES (${id}, ${kind}, ${account_id}, ${identity_id}, ${octets}, ${this.now()})`,
    )
    if (this.#time === 0) await this.#purge(tx, { id, kind, octets })
  }

  /** Changes the size of an item, in bytes. */
  async resize(tx: Transaction, id: string, octets: number): Promise<void> {
    await tx.run(sql`UPDATE trash SET octets = ${octets} WHERE id = ${id}`)
  }

  /** Removes the restorable items of a deleted identity; their keepers clear the rest. */
  async forget(tx: Transaction, identityId: string): Promise<void> {
    await tx.run(sql`DELETE FROM trash WHERE identity_id = ${identityId}`)
  }

  /** Removes a restored item. */
  async take(tx: Transaction, id: string): Promise<void> {
    await tx.run(sql`DELETE FROM trash WHERE id = ${id}`)
  }

  /** Purges one item, whatever its age. */
  async purge(tx: Transaction, kind: string, id: string): Promise<void> {
    await this.#purge(tx, { id, kind, octets: 0 })
  }

  /** Bytes that the trash of an identity, or of all of its account, uses. */
  async octetsOf(of: Whose): Promise<number> {
    const row = await this.#database.get<{ octets: number }>(
      sql`SELECT coalesce(sum(octets), 0) AS octets FROM trash WHERE ${whose(of)}`,
    )
    return row!.octets
  }

  /** Purges the trash of an identity. Returns the number of items. */
  async empty(identityId: string): Promise<number> {
    let count = 0
    await sweep(async () => {
      const purged = await this.#purgeOldest(sql`identity_id = ${identityId}`)
      count += purged.length
      return purged.length > 0
    })
    return count
  }

  /** Purges items older than the retention. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const horizon = iso(this.#clock.now() - this.#time)
    await sweep(async () => (await this.#purgeOldest(sql`deleted_at <= ${horizon}`)).length > 0, signal)
  }

  /**
   * Frees this many bytes by purging the oldest items of an identity, or else of its account. Returns false, with nothing purged, when all
   * of them are not enough.
   */
  async freeBytes(of: Whose, octets: number): Promise<boolean> {
    if (octets <= 0) return true
    if ((await this.octetsOf(of)) < octets) return false
    let freed = 0
    await sweep(async () => {
      const purged = await this.#purgeOldest(whose(of), octets - freed)
      for (const one of purged) freed += one.octets
      return purged.length > 0 && freed < octets
    })
    return freed >= octets
  }

  /** Purges a batch, the oldest first, up to about `octets` bytes. */
  async #purgeOldest(where: Sql, octets: number = Infinity): Promise<Entry[]> {
    const most = Math.min(batchLimit.octets, octets)
    return this.#database.transaction(async (tx) => {
      const oldest = await tx.all<Entry>(
        sql`SELECT id, kind, octets FROM trash WHERE ${where} ORDER BY deleted_at LIMIT ${batchLimit.things}`,
      )
      const purged: Entry[] = []
      let sum = 0
      for (const entry of oldest) {
        if (purged.length > 0 && sum >= most) break
        await this.#purge(tx, entry)
        purged.push(entry)
        sum += entry.octets
      }
      return purged
    })
  }

  async #purge(tx: Transaction, { id, kind }: Entry): Promise<void> {
    await tx.run(sql`DELETE FROM trash WHERE id = ${id}`)
    const keeper = this.#keepers.get(kind)
    if (!keeper) throw new Error(`No trash is registered for ${kind}.`)
    await keeper.purge(tx, id)
  }
}

function whose(of: Whose): Sql {
  return 'identity_id' in of ? sql`identity_id = ${of.identity_id}` : sql`account_id = ${of.account_id}`
}
