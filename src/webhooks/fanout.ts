import type { Basis } from '../basis.ts'
import type { Queue } from '../queue/queue.ts'
import type { EventHeader } from '../events/model.ts'
import { identityDeleted } from '../identities/model.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { type Asked, WantedEvents } from './wanted-events.ts'
import type { EventNames } from './event-names.ts'
import { webhookTest } from './model.ts'
import { disable, kind, listening, type WebhookLoad, type WebhookRow } from './row.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'log'> {
  names: EventNames
  queue: Queue
}

/** The fields of an active webhook that one event needs. */
type Listening = Pick<WebhookRow, 'seq' | 'id' | 'after_seq'>

/** The most deliveries written in one transaction, so that it does not block the event loop. */
const enough = 500

/** The bookmark within an event with more webhooks than that: the last one with a delivery, 0 between events. */
const within = 'webhooks, within an event'

/** Follows the log: creates one delivery for each webhook that wants an event and may see it, in the transaction of the bookmark. */
export class Fanout {
  readonly #deps: Deps
  readonly #inputs: WantedEvents
  #stop: (() => Promise<void>) | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#inputs = new WantedEvents(deps)
  }

  start(): void {
    const { events, log } = this.#deps
    const concerns = (batch: EventHeader[]): Promise<EventHeader[]> => this.#wanted(batch)
    this.#stop = events.follow('webhooks', (tx, batch) => this.#spread(tx, batch), log, { filter: concerns })
  }

  async stop(): Promise<void> {
    await this.#stop?.()
  }

  /** Events that a webhook of their account wants, or that end one. */
  async #wanted(batch: EventHeader[]): Promise<EventHeader[]> {
    // an event delivered to some of its webhooks is delivered to the rest
    if ((await this.#reached(this.#deps.database)) > 0) return batch
    const accounts = new Map<string, readonly Asked[]>()
    for (const { account_id } of batch) {
      if (!accounts.has(account_id)) accounts.set(account_id, await this.#inputs.of(account_id))
    }
    const wanted = ({ type, account_id }: EventHeader): boolean =>
      accounts.get(account_id)!.some(({ types: heard }) => heard.has(type))
    return batch.filter((event) => event.type === identityDeleted.name || wanted(event))
  }

  async #spread(tx: Transaction, batch: EventHeader[]): Promise<number> {
    const { queue } = this.#deps
    const known = new Map<string, Listening[]>()
    let written = 0
    let reached = await this.#reached(tx)
    for (const [index, event] of batch.entries()) {
      if (event.type === identityDeleted.name) {
        await this.#silence(tx, event)
        known.clear()
      }
      // its one delivery was created with it
      if (event.type === webhookTest.name) continue
      const key = `${event.account_id} ${event.identity_id} ${event.type} ${reached}`
      const listeners = known.get(key) ?? (await this.#listening(tx, event, reached))
      known.set(key, listeners)
      const looked = listeners.slice(0, enough - written)
      const targets = looked.filter((webhook) => webhook.after_seq < event.seq)
      const shipments = targets.map(({ id }) => ({
        kind,
        lane: id,
        account_id: event.account_id,
        load: { webhook_id: id, event_id: event.id, event: event.type } satisfies WebhookLoad,
      }))
      await queue.enqueueAll(tx, shipments)
      written += targets.length
      if (looked.length < listeners.length) {
        await this.#reach(tx, looked.at(-1)!.seq)
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

  /** The webhooks after a position that want an event, in order: at most one more than fit, including those created after the event. */
  async #listening(tx: Transaction, { account_id, identity_id, type }: EventHeader, reached: number): Promise<Listening[]> {
    const asked = (await this.#inputs.of(account_id, tx)).filter(({ types: heard }) => heard.has(type))
    if (asked.length === 0) return []
    const inputs = JSON.stringify(asked.map(({ events, scopes }) => `${events} ${scopes}`))
    const now = this.#deps.clock.now()
    const of = (whose: Sql): Sql =>
      sql`SELECT seq, id, after_seq FROM webhooks WHERE account_id = ${account_id} AND ${whose} AND ${listening(now)} AND seq > ${reached}
        AND events || ' ' || scopes IN (SELECT value FROM json_each(${inputs}))`
    // two queries, as no index is ordered for both "this identity" and "no identity"
    return tx.all<Listening>(
      sql`${of(sql`identity_id IS NULL`)} UNION ALL ${of(sql`identity_id = ${identity_id}`)} ORDER BY seq LIMIT ${enough + 1}`,
    )
  }

  async #silence(tx: Transaction, event: EventHeader): Promise<void> {
    const { events, clock } = this.#deps
    const rows = await tx.all<WebhookRow>(sql`SELECT * FROM webhooks WHERE identity_id = ${event.identity_id} AND active = 1`)
    for (const row of rows) await disable(tx, events, clock.now(), row, 'identity_deleted')
  }
}
