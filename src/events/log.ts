import { newId } from '../core/ids.ts'
import { type Clock, iso } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { type Database, join, type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import type { Ages } from '../store/old-rows.ts'
import { fittingRows } from '../store/page.ts'
import { readRows, type Rows } from '../store/rows.ts'
import { inflate } from '../store/blobs.ts'
import { ofTypes } from './catalogue.ts'
import { Follower, type Interest, type ReadEvents } from './follower.ts'
import { insertEvent } from './insertion.ts'
import type { Event, EventHeader, EventReference, EventType } from './model.ts'
import { type EventBytes, prune } from './pruning.ts'
import { EventTail } from './tail.ts'

export interface NewEvent<Data> {
  account_id: string
  identity_id: string | null
  data: Data
  /** The blob that holds the long fields of `data`, which are then not stored twice. */
  blob?: { id: number; fields: readonly (keyof Data & string)[] }
  /** A note for followers that callers never see. It stays when `data` is redacted, so it must not hold content. */
  annotation?: string | null
  /** Bytes of `data` that do not count against the storage quota of the account, as they are few or counted elsewhere; 1 KiB by default. */
  uncounted?: number
  /** True if the quota is enforced, as a caller chose the size: throws Fault forbidden, code `plan_limit_reached`, when it is exceeded. */
  refusable?: boolean
}

/** Selects events of one identity. */
export interface EventQuery {
  account_id: string
  identity_id: string
  types: readonly string[]
  condition: Sql
  ascending?: boolean
  /** The position after which they begin, in their order. */
  after: number | undefined
}

/** Storage quotas of accounts, in bytes. */
export interface StorageBudget {
  available(reader: Reader, accountId: string): Promise<number>
  require(reader: Reader, accountId: string, what: 'storage_bytes', octets: number): Promise<void>
  add(tx: Transaction, accountId: string, what: 'storage_bytes', octets: number): Promise<void>
}

/** Bytes of an event that do not count against the quota, by default. */
const defaultUncounted = 1024

/** Events redacted in one transaction. */
const batchSize = 100

/** Hidden by `hide`, or of a message of a deleted identity, which may have any number of them. */
const hidden = sql`(EXISTS (SELECT 1 FROM hidden_events WHERE hidden_events.seq = events.seq)
  OR (events.type LIKE 'email.%' OR events.type LIKE 'sms.%')
  AND EXISTS (SELECT 1 FROM identities WHERE identities.id = events.identity_id AND identities.status = 'deleted'))`

/** About how many bytes an event has, as SQL that does not read its texts. */
export const eventSize = sql`CASE WHEN ${hidden} THEN 0
  ELSE octet_length(data) + coalesce((SELECT size FROM blobs WHERE blobs.id = events.blob_id), 0) END`

/** The columns of `Row` in `events`; the data of hidden events is not read. */
const rowColumns = sql`seq, events.id, type, account_id, identity_id, created_at, resource_id, CASE WHEN ${hidden} THEN NULL ELSE data END AS data`

type Listener = (event: Event) => void

/** Called in the transaction that removes the data of events, with their ids. */
type ErasureListener = (tx: Transaction, ids: readonly string[]) => Promise<void>

/** Returns the ids of events that are still to be read. */
type PendingEventIds = () => Promise<Iterable<string>>

/** The event log, in commit order. An event is written in the transaction of the change; listeners are called once it is on disk. */
export class EventLog {
  readonly #database: Database
  readonly #clock: Clock
  readonly #storage: Pick<StorageBudget, 'require' | 'add'> | undefined
  readonly #subscribers = new Set<Listener>()
  /** Those of `invalidatedBy`, which are among the subscribers. */
  readonly #cachers = new Set<Listener>()
  readonly #redactions = new Set<() => void>()
  readonly #erasures = new Set<ErasureListener>()
  readonly #followers = new Set<Follower>()
  readonly #readers: PendingEventIds[] = []
  /** The position of `clear` for each identity. */
  readonly #cleared = new Map<string, number>()
  readonly #tail: EventTail

  /** Without `storage` no quota is counted. */
  constructor(database: Database, clock: Clock, storage?: Pick<StorageBudget, 'require' | 'add'>) {
    this.#database = database
    this.#clock = clock
    this.#storage = storage
    this.#tail = new EventTail({
      database,
      find: (seq) => this.findAt(seq),
      hear: (event) => this.#notify(event, this.#subscribers),
    })
    this.onRedaction(() => this.#tail.forget())
    database.caches.onInvalid('redactions', () => this.#redacted())
  }

  /** Begins to hear the events of other boxes too, where there may be some. */
  async start(log: Log): Promise<void> {
    if (this.#database.placesEvents) await this.#tail.start(log)
  }

  async stop(): Promise<void> {
    await this.#tail.stop()
  }

  /** Appends an event in the transaction of the change; subscribers are called once that is on disk. */
  async append<Data>(tx: Transaction, type: EventType<Data>, event: NewEvent<Data>): Promise<Event> {
    const { account_id, identity_id, data, blob, annotation = null, uncounted = defaultUncounted, refusable = false } = event
    const id = newId('evt')
    const created_at = iso(this.#clock.now())
    const kept = JSON.stringify(blob ? without(data as Record<string, unknown>, blob.fields) : data)
    const octets = Math.max(0, Buffer.byteLength(kept) - uncounted)
    if (octets > 0 && refusable) await this.#storage?.require(tx, account_id, 'storage_bytes', octets)
    const header = { id, type: type.name, account_id, identity_id, created_at }
    const rest = { data: kept, resource_id: resourceOf(data), blob_id: blob?.id ?? null, annotation, octets }
    const seq = await insertEvent(tx, this.#database, { ...header, ...rest })
    if (octets > 0) await this.#storage?.add(tx, account_id, 'storage_bytes', octets)
    const appended = { seq, ...header, data }
    tx.afterCommit(() => {
      if (!this.#database.placesEvents) return this.#notify(appended, this.#subscribers)
      this.#tail.add(appended)
      this.#notify(appended, this.#cachers)
    })
    return appended
  }

  /** Removes the data of the events about a deleted resource; the events and their annotations stay. */
  async redact(tx: Transaction, resourceId: string): Promise<void> {
    const rows = await tx.all<EventBytes & { id: string }>(
      sql`SELECT id, account_id, octets FROM events WHERE resource_id = ${resourceId}`,
    )
    const data = redactedData(resourceId)
    await tx.run(sql`UPDATE events SET data = ${data}, blob_id = NULL, octets = 0 WHERE resource_id = ${resourceId}`)
    await this.#erased(tx, rows)
    await this.#unhide(tx, resourceId)
  }

  /**
   * The same as `redact`, for a batch of the events of a deleted identity. Returns whether there may be more. It continues where the last call
   * ended, so that each call costs one batch.
   */
  async clear(tx: Transaction, identityId: string): Promise<boolean> {
    const rows = await tx.all<EventBytes & { seq: number; id: string; resource_id: string | null }>(
      sql`SELECT seq, id, resource_id, account_id, octets FROM events WHERE identity_id = ${identityId} AND ${this.#uncleared(identityId)}
        ORDER BY seq LIMIT ${batchSize}`,
    )
    for (const { seq, resource_id } of rows) {
      const data = redactedData(resource_id)
      await tx.run(sql`UPDATE events SET data = ${data}, blob_id = NULL, octets = 0 WHERE seq = ${seq}`)
      await tx.run(sql`DELETE FROM hidden_events WHERE seq = ${seq}`)
    }
    await this.#erased(tx, rows)
    const last = rows.at(-1)
    tx.afterCommit(() => {
      if (last) this.#cleared.set(identityId, Math.max(last.seq, this.#cleared.get(identityId) ?? 0))
      else this.#cleared.delete(identityId)
    })
    await this.dropCaches(tx)
    return last !== undefined
  }

  /** Redacts so that `reveal` can undo it: the data stays where it is, is not read any more, and still counts against the quota. */
  async hide(tx: Transaction, resourceId: string): Promise<void> {
    // those that have no position yet get none meanwhile
    if (this.#database.placesEvents)
      await tx.all(sql`SELECT 1 FROM events WHERE resource_id = ${resourceId} AND seq < 0 FOR KEY SHARE`)
    // older versions moved the data to `hidden_events`
    await tx.run(
      sql`INSERT INTO hidden_events (seq, data, blob_id) SELECT seq, '', NULL FROM events WHERE resource_id = ${resourceId}`,
    )
    await this.dropCaches(tx)
  }

  /** Shows the data that `hide` hid. */
  async reveal(tx: Transaction, resourceId: string): Promise<void> {
    await tx.run(
      sql`UPDATE events SET data = hidden_events.data, blob_id = hidden_events.blob_id FROM hidden_events
        WHERE hidden_events.seq = events.seq AND hidden_events.data <> '' AND resource_id = ${resourceId}`,
    )
    await this.#unhide(tx, resourceId)
  }

  /** Drops what is cached of events once the transaction, which hides or shows data of some, is committed. */
  async dropCaches(tx: Transaction): Promise<void> {
    await this.#database.caches.invalidate(tx, 'redactions')
    tx.afterCommit(() => this.#redacted())
  }

  /** Adds a listener that is called after each redaction: caches of events must be dropped. */
  onRedaction(listener: () => void): void {
    this.#redactions.add(listener)
  }

  /** False while another box may have redacted events of which `onRedaction` does not know yet: what is cached of them must be read again. */
  get knowsRedactions(): boolean {
    return this.#database.caches.valid
  }

  /** Adds a listener for removed data: what others keep of it, they remove in the same transaction. */
  onErasure(listener: ErasureListener): void {
    this.#erasures.add(listener)
  }

  /** True if the data of an event, or the event, was removed. */
  async isErased(reader: Reader, id: string): Promise<boolean> {
    const row = await reader.get<{ resource_id: string | null; data: string }>(
      sql`SELECT resource_id, substr(data, 1, 200) AS data FROM events WHERE id = ${id}`,
    )
    return row === undefined || row.data === redactedData(row.resource_id)
  }

  /** Adds a listener for new events, called after commit, in commit order. Returns a function that removes it. */
  subscribe(listener: Listener): () => void {
    this.#subscribers.add(listener)
    return () => this.#subscribers.delete(listener)
  }

  /**
   * Adds a listener that drops what is cached. It is called for events as others are; where other boxes write too, also for each event of this box as soon as
   * that is on disk, before it has its position.
   */
  invalidatedBy(listener: Listener): void {
    this.#cachers.add(listener)
    this.#subscribers.add(listener)
  }

  /**
   * Reads every relevant event once, across restarts, at most 200 at a time: the bookmark of this name is committed with what `read` writes, and
   * is not moved for irrelevant events. Events come without their data, which `find` returns. A new name begins at the end of the log.
   * Returns a function that stops the follower and resolves when it has stopped.
   */
  follow(name: string, read: ReadEvents, log: Log, interest: Interest = {}): () => Promise<void> {
    const condition = interest.types ? ofTypes(interest.types) : sql`1 = 1`
    const after = (seq: number, to: number, limit: number): Promise<EventHeader[]> =>
      this.headers(seq, limit, sql`seq <= ${to} AND ${condition}`)
    const end = async (): Promise<number> => (await this.newestUpTo(Number.MAX_SAFE_INTEGER))?.seq ?? 0
    const { run, placesEvents } = this.#database
    const leads = placesEvents ? () => run.leads(`follower ${name}`) : undefined
    const follower = new Follower({ ...interest, name, database: this.#database, log, after, end, read, leads })
    const unsubscribe = this.subscribe((event) => follower.notify(event))
    this.#followers.add(follower)
    return () => {
      unsubscribe()
      return follower.stop()
    }
  }

  /** The followers and their positions; 0 when unknown. */
  get followers(): { name: string; position: number }[] {
    return [...this.#followers].map(({ name, position }) => ({ name, position }))
  }

  /** Resolves when all events so far are heard, and the followers have read them; undefined when they have. */
  get work(): Promise<unknown> | undefined {
    const work = [this.#tail, ...this.#followers].flatMap((reader) => reader.work ?? [])
    return work.length === 0 ? undefined : Promise.all(work)
  }

  /** Registers, before `start`, a reader that reads events later than followers do: `prune` keeps the events that it returns. */
  onPrune(pending: PendingEventIds): void {
    this.#readers.push(pending)
  }

  /** Removes old events that are not needed any more. Returns how many. */
  async prune(ages: Ages, signal?: AbortSignal): Promise<number> {
    const needed = new Set<string>()
    for (const pending of this.#readers) for (const id of await pending()) needed.add(id)
    const elsewhere = await this.#positionsElsewhere()
    const followed = (): number => {
      const here = [...this.#followers].map(({ position }) => position)
      return Math.min(...(elsewhere.length === 0 ? here : here.filter((position) => position > 0)), ...elsewhere)
    }
    return prune({ database: this.#database, followed, needed, ages, erased: (tx, gone) => this.#erased(tx, gone) }, signal)
  }

  /** The headers of events that the condition selects, oldest first after `seq`, at most `limit`. */
  headers(seq: number, limit: number, condition: Sql, reader: Reader = this.#database): Promise<EventHeader[]> {
    return reader.all(
      sql`SELECT seq, id, type, account_id, identity_id, created_at, resource_id, remark AS annotation FROM events WHERE seq > ${seq} AND ${condition}
        ORDER BY seq LIMIT ${limit}`,
    )
  }

  /** One event with its data; undefined when it is not, or no longer, in the log. */
  async find(id: string): Promise<Event | undefined> {
    return (await this.#select(sql`events.id = ${id}`))[0]
  }

  /** The account of an event, and about how many bytes it has; undefined when it is not, or no longer, in the log. */
  sizeOf(id: string): Promise<{ account_id: string; octets: number } | undefined> {
    return this.#database.get(sql`SELECT account_id, ${eventSize} AS octets FROM events WHERE id = ${id}`)
  }

  /** Events of one identity, newest first unless `ascending`, as many as fit into one response, skipping the first `offset`. */
  async list(query: EventQuery, limit: number, offset = 0): Promise<{ events: Event[]; has_more: boolean }> {
    // sizes are read first: the events may be too large to be read together
    const { seqs, has_more } = await fittingRows(this.#database, { ...rowsOf(query), octets: eventSize }, limit, offset)
    return { events: await this.at(seqs), has_more }
  }

  /** The events at these positions, in their order; without those pruned meanwhile. */
  async at(seqs: readonly number[]): Promise<Event[]> {
    const found = seqs.length === 0 ? [] : await this.#select(sql`seq IN (${join([...seqs])})`)
    return found.toSorted((one, other) => seqs.indexOf(one.seq) - seqs.indexOf(other.seq))
  }

  /** The positions of the same, and the messages and other resources that they are about, at most `limit`. */
  listReferences(query: EventQuery, limit: number): Promise<EventReference[]> {
    return readRows(this.#database, { ...rowsOf(query), columns: sql`seq, type, resource_id` }, limit)
  }

  /** The positions of events that the condition selects, oldest first after `seq`, at most `limit`. */
  async seqs(seq: number, limit: number, condition: Sql): Promise<number[]> {
    const rows = await this.#database.all<{ seq: number }>(
      sql`SELECT seq FROM events WHERE seq > ${seq} AND (${condition}) ORDER BY seq LIMIT ${limit}`,
    )
    return rows.map((row) => row.seq)
  }

  /** The event at this position, with its data. */
  async findAt(seq: number): Promise<Event | undefined> {
    return (await this.#select(sql`seq = ${seq}`))[0]
  }

  /** The position of an event; undefined when it is not, or no longer, in the log of this account. */
  async seqOf(id: string, accountId: string): Promise<number | undefined> {
    const row = await this.#database.get<{ seq: number }>(
      sql`SELECT seq FROM events WHERE id = ${id} AND account_id = ${accountId} AND seq > 0`,
    )
    return row?.seq
  }

  /** The position and time of the newest event up to a position; undefined before the first. Cheaper than reading the event. */
  newestUpTo(seq: number): Promise<{ seq: number; created_at: string } | undefined> {
    return this.#database.get(sql`SELECT seq, created_at FROM events WHERE seq > 0 AND seq <= ${seq} ORDER BY seq DESC LIMIT 1`)
  }

  /** The newest event that the condition selects, without its data. */
  last(condition: Sql): Promise<Pick<Event, 'seq' | 'id' | 'created_at'> | undefined> {
    return this.#database.get(
      sql`SELECT seq, id, created_at FROM events WHERE seq > 0 AND ${condition} ORDER BY seq DESC LIMIT 1`,
    )
  }

  /** The positions of the followers that other boxes lead, as they are stored. */
  async #positionsElsewhere(): Promise<number[]> {
    const names = [...this.#followers].flatMap(({ name, position }) => (position === 0 ? name : []))
    if (!this.#database.placesEvents || names.length === 0) return []
    const rows = await this.#database.all<{ seq: number }>(sql`SELECT seq FROM bookmarks WHERE name IN (${join(names)})`)
    return rows.map(({ seq }) => seq)
  }

  /** What `clear` has still to redact. */
  #uncleared(identityId: string): Sql {
    const rest = sql`seq > ${this.#cleared.get(identityId) ?? 0}`
    return this.#database.placesEvents ? sql`(seq < 0 OR ${rest})` : rest
  }

  async #unhide(tx: Transaction, resourceId: string): Promise<void> {
    await tx.run(sql`DELETE FROM hidden_events WHERE seq IN (SELECT seq FROM events WHERE resource_id = ${resourceId})`)
    await this.dropCaches(tx)
  }

  #redacted(): void {
    for (const listener of this.#redactions) listener()
  }

  /** Releases the storage of events whose data was removed, and calls the listeners. */
  async #erased(tx: Transaction, gone: readonly (EventBytes & { id: string })[]): Promise<void> {
    const ids = gone.map(({ id }) => id)
    if (ids.length > 0) for (const listener of this.#erasures) await listener(tx, ids)
    const sums = new Map<string, number>()
    for (const { account_id, octets } of gone) sums.set(account_id, (sums.get(account_id) ?? 0) + octets)
    for (const [account, octets] of sums) if (octets > 0) await this.#storage?.add(tx, account, 'storage_bytes', -octets)
  }

  async #select(rest: Sql): Promise<Event[]> {
    const rows = await this.#database.all<Row>(
      sql`SELECT ${rowColumns}, blobs.deflated, blobs.bytes FROM events
        LEFT JOIN blobs ON blobs.id = events.blob_id AND NOT ${hidden} WHERE ${rest}`,
    )
    return rows.map(asEvent)
  }

  #notify(event: Event, listeners: ReadonlySet<Listener>): void {
    const failures: unknown[] = []
    for (const listener of listeners) {
      try {
        listener(event)
      } catch (error) {
        failures.push(error)
      }
    }
    // the failure of one listener does not stop the others; the store logs it
    if (failures.length > 0) throw new AggregateError(failures, 'Listeners of the event log failed.')
  }
}

function rowsOf({ account_id, identity_id, types, condition, ascending = false, after }: EventQuery): Omit<Rows, 'columns'> {
  const where = sql`identity_id = ${identity_id} AND seq > 0`
  const filters = [ofTypes(types), condition]
  return { from: sql`events`, where, filters, ascending, after, account: account_id }
}

/** The data of a redacted event. */
function redactedData(resourceId: string | null): string {
  return JSON.stringify({ ...(resourceId === null ? {} : { id: resourceId }), deleted: true })
}

interface Row {
  seq: number
  id: string
  type: string
  account_id: string
  identity_id: string | null
  created_at: string
  resource_id: string | null
  /** Null: it is hidden. */
  data: string | null
  deflated?: number | null
  bytes?: Uint8Array | null
}

function asEvent(row: Row): Event {
  const { seq, id, type, account_id, identity_id, created_at } = row
  const own = row.data === null ? { id: row.resource_id, deleted: true } : (JSON.parse(row.data) as Record<string, unknown>)
  const data = row.bytes ? { ...JSON.parse(inflate(row.deflated === 1, row.bytes).toString('utf8')), ...own } : own
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
