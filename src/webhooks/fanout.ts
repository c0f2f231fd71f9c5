import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Scope } from '../core/scopes.ts'
import type { Queue } from '../delivery/queue.ts'
import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'
import { identityDeleted } from '../identities/model.ts'
import { sql } from '../store/database.ts'
import type { Transaction } from '../store/database.ts'
import type { EventNames } from './event-names.ts'
import { webhookTest } from './model.ts'
import { disable, kind } from './row.ts'
import type { Load, WebhookRow } from './row.ts'

interface Parts {
  events: EventLog
  clock: Clock
  log: Log
  names: EventNames
  queue: Queue
}

/** A webhook that listens, as one batch of events needs it. */
interface Listening extends Pick<WebhookRow, 'id' | 'identity_id' | 'after_seq'> {
  heard: Set<string>
}

/** Deliveries written in one transaction, beyond those of the event that reaches it: it must not hold the event loop. */
const enough = 500

/** Follows the log: one delivery for each webhook that asked for an event and may see it, in the transaction of the bookmark. */
export class Fanout {
  readonly #parts: Parts
  #stop: (() => Promise<void>) | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  start(): void {
    const { events, log } = this.#parts
    this.#stop = events.follow('webhooks', (tx, batch) => this.#spread(tx, batch), log)
  }

  async stop(): Promise<void> {
    await this.#stop?.()
  }

  async #spread(tx: Transaction, batch: Event[]): Promise<number> {
    const { queue } = this.#parts
    const accounts = new Map<string, Listening[]>()
    let written = 0
    for (const [index, event] of batch.entries()) {
      if (event.type === identityDeleted.name) {
        await this.#silence(tx, event)
        accounts.delete(event.account_id)
      }
      // its one delivery was made with it
      if (event.type === webhookTest.name) continue
      const listening = accounts.get(event.account_id) ?? (await this.#listening(tx, event.account_id))
      accounts.set(event.account_id, listening)
      const shipments = listening
        .filter((webhook) => wants(webhook, event))
        .map(({ id }) => ({ kind, lane: id, load: { webhook_id: id, event_id: event.id, event: event.type } satisfies Load }))
      await queue.enqueueAll(tx, shipments)
      written += shipments.length
      if (written >= enough) return index + 1
    }
    return batch.length
  }

  async #listening(tx: Transaction, accountId: string): Promise<Listening[]> {
    const rows = await tx.all<Pick<WebhookRow, 'id' | 'identity_id' | 'events' | 'scopes' | 'after_seq'>>(
      sql`SELECT id, identity_id, events, scopes, after_seq FROM webhooks WHERE account_id = ${accountId} AND active = 1 ORDER BY seq`,
    )
    // most are alike
    const sets = new Map<string, Set<string>>()
    return rows.map(({ id, identity_id, events, scopes, after_seq }) => {
      const key = `${events} ${scopes}`
      const heard =
        sets.get(key) ?? this.#parts.names.heard(JSON.parse(events) as string[], new Set(JSON.parse(scopes) as Scope[]))
      sets.set(key, heard)
      return { id, identity_id, after_seq, heard }
    })
  }

  async #silence(tx: Transaction, event: Event): Promise<void> {
    const { events, clock } = this.#parts
    const rows = await tx.all<WebhookRow>(sql`SELECT * FROM webhooks WHERE identity_id = ${event.identity_id} AND active = 1`)
    for (const row of rows) await disable(tx, events, clock.now(), row, 'identity_deleted')
  }
}

function wants({ identity_id, after_seq, heard }: Listening, event: Event): boolean {
  return event.seq > after_seq && heard.has(event.type) && (identity_id === null || identity_id === event.identity_id)
}
