import type { Basis } from '../basis.ts'
import type { Queue } from '../queue/queue.ts'
import type { EventHeader } from '../events/model.ts'
import { identityDeleted } from '../identities/model.ts'
import { sql, type Transaction } from '../store/database.ts'
import type { Asked, EventNames } from './event-names.ts'
import { FanoutBacklog } from './fanout-backlog.ts'
import { type ActiveWebhook, SubscribedWebhooks } from './subscribed-webhooks.ts'
import { webhookTest } from './model.ts'
import { deliveriesOf, disable, type WebhookRow } from './row.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock' | 'log'> {
  names: EventNames
  queue: Queue
}

/** The most deliveries written in one transaction, so that it does not block the event loop. */
const maxRows = 500

/** The most deliveries of one account in one transaction. Events beyond it wait for the turn of their account, and so do those after them. */
const share = 100

/** The most webhooks of deleted identities disabled in one transaction. The event of the deletion is read again until none is left. */
const maxDisabled = 50

/**
 * Follows the log: creates one delivery for each webhook that wants an event and may see it, in the transaction that stores the follower's
 * position, or has the event wait in the backlog.
 */
export class Fanout {
  readonly #deps: Deps
  readonly #subscribed: SubscribedWebhooks
  readonly #backlog: FanoutBacklog
  #stop: (() => Promise<void>) | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#subscribed = new SubscribedWebhooks(deps)
    this.#backlog = new FanoutBacklog({ ...deps, subscribed: this.#subscribed })
  }

  start(): void {
    const { events, log } = this.#deps
    const concerns = (batch: EventHeader[]): Promise<EventHeader[]> => this.#wanted(batch)
    this.#stop = events.follow('webhooks', (tx, batch) => this.#fanOut(tx, batch), log, { filter: concerns })
    this.#backlog.wake()
  }

  async stop(): Promise<void> {
    await this.#stop?.()
    await this.#backlog.stop()
  }

  /** Resolves when no event waits in the backlog, or those that do have no capacity; undefined when that is so. */
  get work(): Promise<void> | undefined {
    return this.#backlog.work
  }

  /** Events that a webhook of their account wants, or that end one. */
  async #wanted(batch: EventHeader[]): Promise<EventHeader[]> {
    const accounts = new Map<string, readonly Asked[]>()
    for (const { account_id } of batch) {
      if (!accounts.has(account_id)) accounts.set(account_id, await this.#subscribed.asked(account_id))
    }
    const wanted = ({ type, account_id }: EventHeader): boolean =>
      accounts.get(account_id)!.some(({ types: heard }) => heard.has(type))
    return batch.filter((event) => event.type === identityDeleted.name || wanted(event))
  }

  async #fanOut(tx: Transaction, batch: EventHeader[]): Promise<number> {
    const known = new Map<string, ActiveWebhook[]>()
    /** Deliveries of each account that may still be written in this transaction; 0 for accounts with events in the backlog. */
    const left = new Map<string, number>()
    let written = 0
    let disabled = 0
    for (const [index, event] of batch.entries()) {
      const { account_id, identity_id, type } = event
      if (type === identityDeleted.name) {
        disabled += await this.#disable(tx, event, maxDisabled - disabled)
        if (disabled >= maxDisabled) return index
        known.clear()
      }
      // its one delivery was created with it
      if (type === webhookTest.name) continue
      const most = left.get(account_id) ?? ((await this.#backlog.has(tx, account_id)) ? 0 : share)
      const key = `${account_id} ${identity_id} ${type}`
      const webhooks = most === 0 ? [] : (known.get(key) ?? (await this.#subscribed.of(tx, event, 0, share + 1)))
      known.set(key, webhooks)
      if (most === 0 || webhooks.length > most) {
        left.set(account_id, 0)
        await this.#backlog.add(tx, event)
        continue
      }
      const some = deliveriesOf(event, webhooks)
      const { length } = some.deliveries
      if (written + length > maxRows) return index
      await this.#deps.queue.enqueueClaiming(tx, some)
      written += length
      left.set(account_id, most - length)
    }
    return batch.length
  }

  /** Disables active webhooks of a deleted identity, at most `limit`. Returns how many. */
  async #disable(tx: Transaction, { account_id, identity_id }: EventHeader, limit: number): Promise<number> {
    const { events, clock } = this.#deps
    const rows = await tx.all<WebhookRow>(
      sql`SELECT * FROM webhooks WHERE account_id = ${account_id} AND identity_id = ${identity_id} AND active = 1 ORDER BY seq LIMIT ${limit}`,
    )
    for (const row of rows) await disable(tx, events, clock.now(), row, 'identity_deleted')
    return rows.length
  }
}
