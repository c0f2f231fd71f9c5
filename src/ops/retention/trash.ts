import { type Clock, iso } from '../../core/clock.ts'
import { sweep } from '../../core/cron.ts'
import { type Database, sql, type Sql, type Transaction } from '../../store/database.ts'

/** Stores one kind of deleted items. */
interface Keeper {
  kind: string
  /** Deletes an item permanently, in the transaction that removes it from the trash. */
  purge(tx: Transaction, id: string): Promise<void>
  /** Deletes a batch of the items of a deleted identity, in the trash or not. Returns whether there may be more. */
  clear(tx: Transaction, identityId: string): Promise<boolean>
}

interface TrashItem {
  id: string
  kind: string
  account_id: string
  identity_id: string
  /** Bytes of the account's quota that it uses until it is purged. */
  octets: number
}

type Entry = Pick<TrashItem, 'id' | 'kind' | 'octets'>
type Counted = Pick<TrashItem, 'identity_id' | 'octets'>

/** Of an identity, or of all identities of an account. */
type Whose = { identity_id: string } | { account_id: string }

/** The most items purged in one transaction, and their bytes, so that it does not block the event loop; and the most of which only the entry goes. */
const batchLimit = { things: 16, octets: 4 * 1024 * 1024, forgotten: 500 }

/** Deleted items that can be restored for a time. They count against the quota, and are purged when it is exceeded. */
export class Trash {
  readonly #database: Database
  readonly #clock: Clock
  readonly #keepers = new Map<string, Keeper>()
  #time: number

  constructor(deps: { database: Database; clock: Clock; time: number }) {
    this.#database = deps.database
    this.#clock = deps.clock
    this.#time = deps.time
  }

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

  get time(): number {
    return this.#time
  }

  now(): string {
    return iso(this.#clock.now())
  }

  async put(tx: Transaction, { id, kind, account_id, identity_id, octets }: TrashItem): Promise<void> {
    await tx.run(
      sql`INSERT INTO trash (id, kind, account_id, identity_id, octets, deleted_at)
        VALUES (${id}, ${kind}, ${account_id}, ${identity_id}, ${octets}, ${this.now()})`,
    )
    await addBytes(tx, identity_id, octets)
    if (this.#time === 0) await this.purge(tx, kind, id)
  }

  /** Sets the bytes that an item uses. */
  async resize(tx: Transaction, id: string, octets: number): Promise<void> {
    const row = await tx.get<Counted>(sql`SELECT identity_id, octets FROM trash WHERE id = ${id}`)
    if (!row) return
    await tx.run(sql`UPDATE trash SET octets = ${octets} WHERE id = ${id}`)
    await addBytes(tx, row.identity_id, octets - row.octets)
  }

  /** Removes a batch of the restorable items of a deleted identity; their keepers clear the rest. Returns undefined when none is left. */
  async forgetSome(tx: Transaction, identityId: string): Promise<number | undefined> {
    const some = sql`SELECT id FROM trash WHERE identity_id = ${identityId} LIMIT ${batchLimit.forgotten}`
    const { changes } = await tx.run(sql`DELETE FROM trash WHERE id IN (${some})`)
    return changes < batchLimit.forgotten ? undefined : 0
  }

  async take(tx: Transaction, id: string): Promise<void> {
    const row = await tx.get<Counted>(sql`DELETE FROM trash WHERE id = ${id} RETURNING identity_id, octets`)
    if (row) await addBytes(tx, row.identity_id, -row.octets)
  }

  /** Purges one item, whatever its age. */
  async purge(tx: Transaction, kind: string, id: string): Promise<void> {
    await this.take(tx, id)
    const keeper = this.#keepers.get(kind)
    if (!keeper) throw new Error(`No trash is registered for ${kind}.`)
    await keeper.purge(tx, id)
  }

  /** Bytes that the trash of an identity, or of all of its account, uses. */
  async octetsOf(of: Whose): Promise<number> {
    const row = await this.#database.get<{ octets: number }>(
      'identity_id' in of
        ? sql`SELECT trash_bytes AS octets FROM identities WHERE id = ${of.identity_id}`
        : sql`SELECT coalesce(sum(trash_bytes), 0) AS octets FROM identities WHERE account_id = ${of.account_id} AND status <> 'deleted'`,
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
        await this.purge(tx, entry.kind, entry.id)
        purged.push(entry)
        sum += entry.octets
      }
      return purged
    })
  }
}

/** Adds to the bytes of an identity's trash; negative amounts reduce them. */
async function addBytes(tx: Transaction, identityId: string, octets: number): Promise<void> {
  await tx.run(
    sql`UPDATE identities SET trash_bytes = CASE WHEN trash_bytes + ${octets} > 0 THEN trash_bytes + ${octets} ELSE 0 END WHERE id = ${identityId}`,
  )
}

function whose(of: Whose): Sql {
  return 'identity_id' in of ? sql`identity_id = ${of.identity_id}` : sql`account_id = ${of.account_id}`
}
