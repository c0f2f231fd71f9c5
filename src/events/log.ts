import { newId } from '../core/ids.ts'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import { sql } from '../store/database.ts'
import type { Database, Sql, Transaction } from '../store/database.ts'
import { unpack } from '../store/blobs.ts'
import type { Event, EventType } from './model.ts'

export interface NewEvent<Data> {
  account_id: string
  identity_id: string | null
  data: Data
  /** The blob that holds the long fields of `data`; they are then not written a second time. */
  blob?: { id: number; fields: readonly (keyof Data & string)[] }
}

type Listener = (event: Event) => void

/** What happened, in commit order: written in the transaction of the change, heard after it is on disk. */
export class EventLog {
  readonly #database: Database
  readonly #clock: Clock
  readonly #tails = new Set<Listener>()

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Appends in the transaction of the change; those who tail hear of it once that is on disk. */
  async append<Data>(tx: Transaction, type: EventType<Data>, event: NewEvent<Data>): Promise<Event> {
    const { account_id, identity_id, data, blob } = event
    const id = newId('evt')
    const created_at = iso(this.#clock.now())
    const kept = blob ? without(data as Record<string, unknown>, blob.fields) : data
    const row = await tx.get<{ seq: number }>(
      sql`INSERT INTO events (id, type, account_id, identity_id, created_at, data, blob_id) VALUES (${id}, ${type.name}, ${account_id},
        ${identity_id}, ${created_at}, ${JSON.stringify(kept)}, ${blob?.id ?? null}) RETURNING seq`,
    )
    const appended = { seq: row!.seq, id, type: type.name, account_id, identity_id, created_at, data }
    tx.afterCommit(() => this.#tell(appended))
    return appended
  }

  /** Live only, after commit, in commit order. Answers how to stop listening. */
  tail(listener: Listener): () => void {
    this.#tails.add(listener)
    return () => this.#tails.delete(listener)
  }

  /** Events that the condition selects: oldest first after `seq`, at most `limit`, leaving out the first `offset`. */
  after(seq: number, limit: number, condition: Sql, offset = 0): Promise<Event[]> {
    return this.#select(sql`seq > ${seq} AND (${condition}) ORDER BY seq LIMIT ${limit} OFFSET ${offset}`)
  }

  /** Events that the condition selects: newest first before `seq`, at most `limit`, leaving out the first `offset`. */
  before(seq: number, limit: number, condition: Sql, offset = 0): Promise<Event[]> {
    return this.#select(sql`seq < ${seq} AND (${condition}) ORDER BY seq DESC LIMIT ${limit} OFFSET ${offset}`)
  }

  /** The place of an event in the order; undefined when it is not (or no longer) in the log of this account. */
  async place(id: string, accountId: string): Promise<number | undefined> {
    const row = await this.#database.get<{ seq: number }>(
      sql`SELECT seq FROM events WHERE id = ${id} AND account_id = ${accountId}`,
    )
    return row?.seq
  }

  /** The newest event that the condition selects. */
  async last(condition: Sql): Promise<Event | undefined> {
    return (await this.before(Number.MAX_SAFE_INTEGER, 1, condition))[0]
  }

  async #select(rest: Sql): Promise<Event[]> {
    const rows = await this.#database.all<Row>(
      sql`SELECT events.*, blobs.deflated, blobs.bytes FROM events LEFT JOIN blobs ON blobs.id = events.blob_id WHERE ${rest}`,
    )
    return rows.map((row) => read(row))
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

interface Row {
  seq: number
  id: string
  type: string
  account_id: string
  identity_id: string | null
  created_at: string
  data: string
  deflated: number | null
  bytes: Uint8Array | null
}

function read(row: Row): Event {
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
