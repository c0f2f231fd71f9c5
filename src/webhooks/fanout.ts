import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Scope } from '../core/scopes.ts'
import type { Queue } from '../delivery/queue.ts'
import type { EventLog } from '../events/log.ts'
import type { Happening } from '../events/model.ts'
import { identityDeleted } from '../identities/model.ts'
import { sql } from '../store/database.ts'
import type { Database, Reader, Transaction } from '../store/database.ts'
import type { EventNames } from './event-names.ts'
import { webhookTest } from './model.ts'
import { disable, kind, listening } from './row.ts'
import type { Load, WebhookRow } from './row.ts'

interface Parts {
  database: Database
  events: EventLog
  clock: Clock
  log: Log
  names: EventNames
  queue: Queue
}

/** A webhook that listens, as one batch of events needs it. */
interface Listening extends Pick<WebhookRow, 'seq' | 'id' | 'identity_id' | 'after_seq'> {
  heard: Set<string>
}

/** Deliveries written in one transaction: it must not hold the event loop. */
const enough = 500

/** The bookmark within an event that more webhooks hear than that: the last one that has its delivery, 0 between events. */
const within = 'webhooks, within an event'

/** Follows the log: one delivery for each webhook that asked for an event and may see it, in the transaction of the bookmark. */
export class Fanout {
  readonly #parts: Parts
  #stop: (() => Promise<void>) | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  start(): void {
    const { events, log } = this.#parts
    const concerns = (batch: Happening[]): Promise<Happening[]> => this.#heard(batch)
    this.#stop = events.follow('webhooks', (tx, batch) => this.#spread(tx, batch), log, { concerns })
  }

  async stop(): Promise<void> {
    await this.#stop?.()
  }

  /** Events that some webhook asks for, whoever they are about, or that end one. */
  async #heard(batch: Happening[]): Promise<Happening[]> {
    const { database } = this.#parts
    // one that was told to a part of its webhooks is told to the others
    if ((await this.#reached(database)) > 0) return batch
    const accounts = new Map<string, Set<string>>()
    for (const { account_id } of batch) {
      if (!accounts.has(account_id)) accounts.set(account_id, await this.#askedFor(account_id))
    }
    return batch.filter(({ type, account_id }) => type === identityDeleted.name || accounts.get(account_id)!.has(type))
  }

  async #askedFor(accountId: string): Promise<Set<string>> {
    const rows = await this.#parts.database.all<Pick<WebhookRow, 'events' | 'scopes'>>(
      sql`SELECT DISTINCT events, scopes FROM webhooks WHERE account_id = ${accountId}
        AND ${listening(this.#parts.clock.now())}`,
    )
    return new Set(rows.flatMap((row) => [...this.#namesOf(row)]))
  }

  async #spread(tx: Transaction, batch: Happening[]): Promise<number> {
    const { queue } = this.#parts
    const accounts = new Map<string, Listening[]>()
    let written = 0
    let reached = await this.#reached(tx)
    for (const [index, event] of batch.entries()) {
      if (event.type === identityDeleted.name) {
        await this.#silence(tx, event)
        accounts.delete(event.account_id)
      }
      // its one delivery was made with it
      if (event.type === webhookTest.name) continue
      const listeners = accounts.get(event.account_id) ?? (await this.#listening(tx, event.account_id))
      accounts.set(event.account_id, listeners)
      const wanting = listeners.filter((webhook) => webhook.seq > reached && wants(webhook, event))
      const told = wanting.slice(0, enough - written)
      const shipments = told.map(({ id }) => ({
        kind,
        lane: id,
        account_id: event.account_id,
        load: { webhook_id: id, event_id: event.id, event: event.type } satisfies Load,
      }))
      await queue.enqueueAll(tx, shipments)
      written += told.length
      if (told.length < wanting.length) {
        await this.#reach(tx, told.at(-1)!.seq)
        return index
      }
      if (reached > 0) await this.#reach(tx, 0)
      reached = 0
      if (written >= enough) return index + 1
    }
    return batch.length
  }

  async #reached(reader: Reader): Promise<number> {
    return (await reader.get<{ seq: number }>(sql`SELECT seq FROM bookmarks WHERE name = ${within}`))?.seq ?? 0
  }

  async #reach(tx: Transaction, seq: number): Promise<void> {
    await tx.run(sql`INSERT INTO bookmarks (name, seq) VALUES (${within}, ${seq}) ON CONFLICT DO UPDATE SET seq = excluded.seq`)
  }

  async #listening(tx: Transaction, accountId: string): Promise<Listening[]> {
    const rows = await tx.all<Pick<WebhookRow, 'seq' | 'id' | 'identity_id' | 'events' | 'scopes' | 'after_seq'>>(
      sql`SELECT seq, id, identity_id, events, scopes, after_seq FROM webhooks WHERE account_id = ${accountId}
        AND ${listening(this.#parts.clock.now())} ORDER BY seq`,
    )
    // most are alike
    const sets = new Map<string, Set<string>>()
    return rows.map(({ events, scopes, ...row }) => {
      const key = `${events} ${scopes}`
      const heard = sets.get(key) ?? this.#namesOf({ events, scopes })
      sets.set(key, heard)
      return { ...row, heard }
    })
  }

  #namesOf({ events, scopes }: Pick<WebhookRow, 'events' | 'scopes'>): Set<string> {
    return this.#parts.names.heard(JSON.parse(events) as string[], new Set(JSON.parse(scopes) as Scope[]))
  }

  async #silence(tx: Transaction, event: Happening): Promise<void> {
    const { events, clock } = this.#parts
    const rows = await tx.all<WebhookRow>(sql`SELECT * FROM webhooks WHERE identity_id = ${event.identity_id} AND active = 1`)
    for (const row of rows) await disable(tx, events, clock.now(), row, 'identity_deleted')
  }
}

function wants({ identity_id, after_seq, heard }: Listening, event: Happening): boolean {
  return event.seq > after_seq && heard.has(event.type) && (identity_id === null || identity_id === event.identity_id)
}
