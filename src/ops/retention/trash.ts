import { type Clock, iso } from '../../core/clock.ts'
import { sweep } from '../../core/cron.ts'
import { type Database, sql, type Sql, type Transaction } from '../../store/database.ts'

/** Who keeps what was deleted, by its kind. */
export interface Keeper {
  kind: string
  /** Removes for good what is in the trash, in the transaction that forgets it there. */
  purge(tx: Transaction, id: string): Promise<void>
  /** Removes for good a little of what an identity that is gone had, in the trash or not. Answers whether there may be more. */
  clear(tx: Transaction, identityId: string): Promise<boolean>
}

/** What is thrown away. */
export interface Thrown {
  id: string
  kind: string
  account_id: string
  identity_id: string
  /** Octets of its account's room that it takes until it is purged. */
  octets: number
}

type Entry = Pick<Thrown, 'id' | 'kind' | 'octets'>

/** Of an identity, or of all identities of an account. */
type Whose = { identity_id: string } | { account_id: string }

/** Things purged in one transaction, and their octets, at most: it must not hold the event loop. */
const handful = { things: 16, octets: 4 * 1024 * 1024 }

/** What was deleted and can be brought back for a while. It takes room like everything else, and makes way when that is short. */
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

  /** Before the first call. */
  add(keeper: Keeper): void {
    this.#keepers.set(keeper.kind, keeper)
  }

  get keepers(): Keeper[] {
    return [...this.#keepers.values()]
  }

  /** Milliseconds that things stay from now on; 0: they are purged as they come. */
  reload(time: number): void {
    this.#time = time
  }

  /** Milliseconds that things stay. */
  get time(): number {
    return this.#time
  }

  /** Now, as it is written on what is thrown away. */
  now(): string {
    return iso(this.#clock.now())
  }

  async put(tx: Transaction, { id, kind, account_id, identity_id, octets }: Thrown): Promise<void> {
    await tx.run(
      sql`INSERT INTO trash (id, kind, account_id, identity_id, octets, deleted_at)
        VALUES (${id}, ${kind}, ${account_id}, ${identity_id}, ${octets}, ${this.now()})`,
    )
    if (this.#time === 0) await this.#purge(tx, { id, kind, octets })
  }

  /** It takes other room than before, in octets. */
  async resize(tx: Transaction, id: string, octets: number): Promise<void> {
    await tx.run(sql`UPDATE trash SET octets = ${octets} WHERE id = ${id}`)
  }

  /** With its identity everything goes that can be brought back: the rest is for the keepers to clear. */
  async forget(tx: Transaction, identityId: string): Promise<void> {
    await tx.run(sql`DELETE FROM trash WHERE identity_id = ${identityId}`)
  }

  /** It was brought back. */
  async take(tx: Transaction, id: string): Promise<void> {
    await tx.run(sql`DELETE FROM trash WHERE id = ${id}`)
  }

  /** Purges one thing, whatever its age. */
  async purge(tx: Transaction, kind: string, id: string): Promise<void> {
    await this.#purge(tx, { id, kind, octets: 0 })
  }

  /** Octets that the trash of an identity, or of all of its account, takes. */
  async octetsOf(of: Whose): Promise<number> {
    const row = await this.#database.get<{ octets: number }>(
      sql`SELECT coalesce(sum(octets), 0) AS octets FROM trash WHERE ${whose(of)}`,
    )
    return row!.octets
  }

  /** Purges all that an identity has in the trash. Answers how many things that was. */
  async empty(identityId: string): Promise<number> {
    let count = 0
    await sweep(async () => {
      const purged = await this.#purgeOldest(sql`identity_id = ${identityId}`)
      count += purged.length
      return purged.length > 0
    })
    return count
  }

  /** Purges what has been there for as long as things stay. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const horizon = iso(this.#clock.now() - this.#time)
    await sweep(async () => (await this.#purgeOldest(sql`deleted_at <= ${horizon}`)).length > 0, signal)
  }

  /**
   * Makes room of so many octets by purging what an identity, or else its account, has had in the trash for longest. Answers false, with
   * nothing purged, when all of it were not enough.
   */
  async giveWay(of: Whose, octets: number): Promise<boolean> {
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

  /** Purges a handful, the oldest first, and not much more than `octets`. */
  async #purgeOldest(where: Sql, octets: number = Infinity): Promise<Entry[]> {
    const most = Math.min(handful.octets, octets)
    return this.#database.transaction(async (tx) => {
      const oldest = await tx.all<Entry>(
        sql`SELECT id, kind, octets FROM trash WHERE ${where} ORDER BY deleted_at LIMIT ${handful.things}`,
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
    if (!keeper) throw new Error(`Nobody keeps ${kind} in the trash.`)
    await keeper.purge(tx, id)
  }
}

function whose(of: Whose): Sql {
  return 'identity_id' in of ? sql`identity_id = ${of.identity_id}` : sql`account_id = ${of.account_id}`
}
