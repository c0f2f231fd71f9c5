import { newId } from '../core/ids.ts'
import { type Clock, iso } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { type Database, join, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { fitting } from '../store/page.ts'
import { readRows, type Rows } from '../store/rows.ts'
import { unpack } from '../store/blobs.ts'
import { ofTypes } from './catalogue.ts'
import { Follower, type Interest, type ReadEvents } from './follower.ts'
import type { Event, EventType, EventHeader } from './model.ts'
import { type Capacity, prune } from './pruning.ts'

export interface NewEvent<Data> {
  account_id: string
  identity_id: string | null
  data: Data
  /** The blob that holds the long fields of `data`; they are then not written a second time. */
  blob?: { id: number; fields: readonly (keyof Data & string)[] }
  /** A word that followers see, never shown to callers. It outlives `data`: nothing of what people wrote may be in it. */
  remark?: string | null
  /** Octets of `data` that take no room of the account's: there are few of them, or they count with what it tells of. Left out: 1 KiB. */
  uncounted?: number
  /** A caller chose how large it is: throws Fault forbidden, code `plan_limit_reached`, where its account has no room for it. */
  refusable?: boolean
}

/** Which events of one identity. */
export interface Whose {
  account_id: string
  identity_id: string
  types: readonly string[]
  condition: Sql
  ascending?: boolean
  /** The place after which they begin, in their order. */
  after: number | undefined
}

/** The room that accounts have for what is kept of theirs, in octets. */
export interface StorageBudget {
  require(reader: Reader, accountId: string, what: 'storage_bytes', octets: number): Promise<void>
  add(tx: Transaction, accountId: string, what: 'storage_bytes', octets: number): Promise<void>
}

/** Octets of an event that take no room. */
const little = 1024

/** Events that are cleared in one transaction. */
const handful = 100

type Listener = (event: Event) => void

/** Answers the ids of events that somebody still wants to read. */
type Wanting = () => Promise<Iterable<string>>

/** What happened, in commit order: written in the transaction of the change, heard after it is on disk. */
export class EventLog {
  readonly #database: Database
  readonly #clock: Clock
  readonly #storage: StorageBudget | undefined
  readonly #tails = new Set<Listener>()
  readonly #redactions = new Set<() => void>()
  readonly #followers = new Set<Follower>()
  readonly #readers: Wanting[] = []
  /** How far `clear` has come with each identity. */
  readonly #cleared = new Map<string, number>()

  /** Without `storage` nothing is counted. */
  constructor(database: Database, clock: Clock, storage?: StorageBudget) {
    this.#database = database
    this.#clock = clock
    this.#storage = storage
  }

  /** Appends in the transaction of the change; those who tail hear of it once that is on disk. */
  async append<Data>(tx: Transaction, type: EventType<Data>, event: NewEvent<Data>): Promise<Event> {
    const { account_id, identity_id, data, blob, remark = null, uncounted = little, refusable = false } = event
    const id = newId('evt')
    const created_at = iso(this.#clock.now())
    const kept = JSON.stringify(blob ? without(data as Record<string, unknown>, blob.fields) : data)
    const octets = Math.max(0, Buffer.byteLength(kept) - uncounted)
    if (octets > 0 && refusable) await this.#storage?.require(tx, account_id, 'storage_bytes', octets)
    const row = await tx.get<{ seq: number }>(
      sql`INSERT INTO events (id, type, account_id, identity_id, created_at, data, resource_id, blob_id, remark, octets)
        VALUES (${id}, ${type.name}, ${account_id}, ${identity_id}, ${created_at}, ${kept}, ${resourceOf(data)},
        ${blob?.id ?? null}, ${remark}, ${octets}) RETURNING seq`,
    )
    if (octets > 0) await this.#storage?.add(tx, account_id, 'storage_bytes', octets)
    const appended = { seq: row!.seq, id, type: type.name, account_id, identity_id, created_at, data }
    tx.afterCommit(() => this.#tell(appended))
    return appended
  }

  /** Leaves of the events about a resource only that they happened, and their remark: what was deleted is not read in the log either. */
  async redact(tx: Transaction, resourceId: string): Promise<void> {
    await this.#blank(tx, resourceId)
    await tx.run(sql`DELETE FROM hidden_events WHERE seq IN (SELECT seq FROM events WHERE resource_id = ${resourceId})`)
    await this.#giveBack(
      tx,
      await tx.all(sql`SELECT account_id, octets FROM events WHERE resource_id = ${resourceId} AND octets > 0`),
    )
    await tx.run(sql`UPDATE events SET octets = 0 WHERE resource_id = ${resourceId} AND octets > 0`)
  }

  /**
   * As `redact`, for a handful of all events of an identity that is gone. Answers whether there may be more. It goes on where the last call ended, so that
   * none costs more than its handful.
   */
  async clear(tx: Transaction, identityId: string): Promise<boolean> {
    const rows = await tx.all<{ seq: number; resource_id: string | null; account_id: string; octets: number }>(
      sql`SELECT seq, resource_id, account_id, octets FROM events WHERE identity_id = ${identityId} AND seq > ${this.#cleared.get(identityId) ?? 0}
        ORDER BY seq LIMIT ${handful}`,
    )
    for (const { seq, resource_id } of rows) {
      const data = JSON.stringify({ ...(resource_id === null ? {} : { id: resource_id }), deleted: true })
      await tx.run(sql`UPDATE events SET data = ${data}, blob_id = NULL, octets = 0 WHERE seq = ${seq}`)
      await tx.run(sql`DELETE FROM hidden_events WHERE seq = ${seq}`)
    }
    await this.#giveBack(tx, rows)
    const last = rows.at(-1)
    tx.afterCommit(() => {
      if (last) this.#cleared.set(identityId, last.seq)
      else this.#cleared.delete(identityId)
      for (const listener of this.#redactions) listener()
    })
    return last !== undefined
  }

  /** Redacts so that `reveal` can undo it: whoever reads the log reads what `redact` leaves. What is put aside takes its room on. */
  async hide(tx: Transaction, resourceId: string): Promise<void> {
    const hidden = await tx.all<{ seq: number; data: string; blob_id: number | null }>(
      sql`SELECT seq, data, blob_id FROM events WHERE resource_id = ${resourceId}`,
    )
    await this.#blank(tx, resourceId)
    for (const { seq, data, blob_id } of hidden) {
      await tx.run(sql`INSERT INTO hidden_events (seq, data, blob_id) VALUES (${seq}, ${data}, ${blob_id})`)
    }
  }

  /** The events about a resource carry again what they did before `hide`. */
  async reveal(tx: Transaction, resourceId: string): Promise<void> {
    await tx.run(
      sql`UPDATE events SET data = hidden_events.data, blob_id = hidden_events.blob_id FROM hidden_events
        WHERE hidden_events.seq = events.seq AND resource_id = ${resourceId}`,
    )
    await tx.run(sql`DELETE FROM hidden_events WHERE seq IN (SELECT seq FROM events WHERE resource_id = ${resourceId})`)
    // who has a redacted copy reads the log again
    tx.afterCommit(() => {
      for (const listener of this.#redactions) listener()
    })
  }

  /** Called after each redaction: who keeps events for a while must forget them. */
  onRedaction(listener: () => void): void {
    this.#redactions.add(listener)
  }

  /** Live only, after commit, in commit order. Answers how to stop listening. */
  tail(listener: Listener): () => void {
    this.#tails.add(listener)
    return () => this.#tails.delete(listener)
  }

  /**
   * Every event of interest once, across restarts, at most 200 at a time: the bookmark of this name commits with what `read` writes, and
   * stays where it is over events that are of none. They come without their data; `find` has it. A new name begins at the end of the log.
   * Answers how to stop, which waits.
   */
  follow(name: string, read: ReadEvents, log: Log, interest: Interest = {}): () => Promise<void> {
    const asked = interest.types ? ofTypes(interest.types) : sql`1 = 1`
    const after = (seq: number, limit: number): Promise<EventHeader[]> => this.headers(seq, limit, asked)
    const follower = new Follower({ ...interest, name, database: this.#database, log, after, read })
    const deaf = this.tail((event) => follower.hear(event))
    this.#followers.add(follower)
    return () => {
      deaf()
      return follower.stop()
    }
  }

  /** Who follows, and up to where each has read everything or passed it over; 0 when that is not known. */
  get followers(): { name: string; place: number }[] {
    return [...this.#followers].map(({ name, place }) => ({ name, place }))
  }

  /** Before `start`: who reads events later than those who follow says which of them it still wants. */
  onPrune(wanting: Wanting): void {
    this.#readers.push(wanting)
  }

  /** Removes events from before a time (ISO 8601), as far as nobody still needs them. Answers how many. */
  async prune(before: string, signal?: AbortSignal): Promise<number> {
    const needed = new Set<string>()
    for (const wanting of this.#readers) for (const id of await wanting()) needed.add(id)
    const followed = (): number => Math.min(...[...this.#followers].map(({ place }) => place))
    const giveBack = (tx: Transaction, gone: readonly Capacity[]): Promise<void> => this.#giveBack(tx, gone)
    return prune({ database: this.#database, followed, needed, before, giveBack }, signal)
  }

  /** Events that the condition selects as followers are told of them: oldest first after `seq`, at most `limit`. */
  headers(seq: number, limit: number, condition: Sql, reader: Reader = this.#database): Promise<EventHeader[]> {
    return reader.all(
      sql`SELECT seq, id, type, account_id, identity_id, created_at, resource_id, remark FROM events WHERE seq > ${seq} AND ${condition}
        ORDER BY seq LIMIT ${limit}`,
    )
  }

  /** One event, whole; undefined when it is not (or no longer) in the log. */
  async find(id: string): Promise<Event | undefined> {
    return (await this.#select(sql`events.id = ${id}`))[0]
  }

  /** Events of one identity, newest first unless it is `ascending`, as many as one answer carries, leaving out the first `offset`. */
  async list(whose: Whose, limit: number, offset = 0): Promise<{ events: Event[]; has_more: boolean }> {
    // how large they are is asked first: they may be too large to be read at once
    const octets = sql`octet_length(data) + coalesce((SELECT size FROM blobs WHERE blobs.id = events.blob_id), 0) AS octets`
    const listed = { ...rowsOf(whose), columns: sql`seq, ${octets}` }
    const heads = await readRows<{ seq: number; octets: number }>(this.#database, listed, limit + 1, offset)
    const carried = fitting(
      heads.map((head) => head.octets),
      limit,
    )
    const seqs = heads.slice(0, carried).map(({ seq }) => seq)
    const found = seqs.length === 0 ? [] : await this.#select(sql`seq IN (${join(seqs)})`)
    const events = found.toSorted((one, other) => seqs.indexOf(one.seq) - seqs.indexOf(other.seq))
    return { events, has_more: heads.length > carried }
  }

  /** The same, at most `limit` and without the long fields: for looking through many. */
  async glance(whose: Whose, limit: number): Promise<Event[]> {
    const rows = await readRows<Row>(this.#database, { ...rowsOf(whose), columns: sql`*` }, limit)
    return rows.map(asEvent)
  }

  /** Events that the condition selects, oldest first after `seq`, at most `limit`: only where they are, for they may be large, and not all needed at once. */
  async places(seq: number, limit: number, condition: Sql): Promise<number[]> {
    const rows = await this.#database.all<{ seq: number }>(
      sql`SELECT seq FROM events WHERE seq > ${seq} AND (${condition}) ORDER BY seq LIMIT ${limit}`,
    )
    return rows.map((row) => row.seq)
  }

  /** The event of this place, whole. */
  async at(seq: number): Promise<Event | undefined> {
    return (await this.#select(sql`seq = ${seq}`))[0]
  }

  /** The place of an event in the order; undefined when it is not (or no longer) in the log of this account. */
  async place(id: string, accountId: string): Promise<number | undefined> {
    const row = await this.#database.get<{ seq: number }>(
      sql`SELECT seq FROM events WHERE id = ${id} AND account_id = ${accountId}`,
    )
    return row?.seq
  }

  /** The place and time of the newest event up to a place; undefined before the first. Far cheaper than the event itself. */
  mark(seq: number): Promise<{ seq: number; created_at: string } | undefined> {
    return this.#database.get(sql`SELECT seq, created_at FROM events WHERE seq <= ${seq} ORDER BY seq DESC LIMIT 1`)
  }

  /** The newest event that the condition selects, without what it carries. */
  last(condition: Sql): Promise<Pick<Event, 'seq' | 'id' | 'created_at'> | undefined> {
    return this.#database.get(sql`SELECT seq, id, created_at FROM events WHERE ${condition} ORDER BY seq DESC LIMIT 1`)
  }

  async #blank(tx: Transaction, resourceId: string): Promise<void> {
    const data = JSON.stringify({ id: resourceId, deleted: true })
    await tx.run(sql`UPDATE events SET data = ${data}, blob_id = NULL WHERE resource_id = ${resourceId}`)
    tx.afterCommit(() => {
      for (const listener of this.#redactions) listener()
    })
  }

  /** The room that events took, to their accounts. */
  async #giveBack(tx: Transaction, gone: readonly Capacity[]): Promise<void> {
    const sums = new Map<string, number>()
    for (const { account_id, octets } of gone) sums.set(account_id, (sums.get(account_id) ?? 0) + octets)
    for (const [account, octets] of sums) if (octets > 0) await this.#storage?.add(tx, account, 'storage_bytes', -octets)
  }

  async #select(rest: Sql): Promise<Event[]> {
    const rows = await this.#database.all<Row>(
      sql`SELECT events.*, blobs.deflated, blobs.bytes FROM events LEFT JOIN blobs ON blobs.id = events.blob_id WHERE ${rest}`,
    )
    return rows.map(asEvent)
  }

  #tell(event: Event): void {
    const failures: unknown[] = []
    for (const listener of this.#tails) {
      try {
        listener(event)
      } catch (error) {
        failures.push(error)
      }
    }
    // one reader's failure does not keep the event from the next; the store logs it
    if (failures.length > 0) throw new AggregateError(failures, 'Readers of the log failed.')
  }
}

function rowsOf({ account_id, identity_id, types, condition, ascending = false, after }: Whose): Omit<Rows, 'columns'> {
  const where = sql`identity_id = ${identity_id}`
  const filters = [ofTypes(types), condition]
  return { from: sql`events`, where, filters, order: 'seq', ascending, after, account: account_id }
}

interface Row {
  seq: number
  id: string
  type: string
  account_id: string
  identity_id: string | null
  created_at: string
  data: string
  deflated?: number | null
  bytes?: Uint8Array | null
}

function asEvent(row: Row): Event {
  const { seq, id, type, account_id, identity_id, created_at } = row
  const data = JSON.parse(row.data) as Record<string, unknown>
  if (row.bytes) Object.assign(data, JSON.parse(unpack(row.deflated === 1, row.bytes).toString('utf8')))
  return { seq, id, type, account_id, identity_id, created_at, data }
}

function without(data: Record<string, unknown>, fields: readonly string[]): Record<string, unknown> {
  const rest = { ...data }
  for (const field of fields) delete rest[field]
  return rest
}

function resourceOf(data: unknown): string | null {
  const id = (data as { id?: unknown } | null)?.id
  return typeof id === 'string' ? id : null
}
