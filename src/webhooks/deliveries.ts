import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import { conflict } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Paging } from '../core/shapes.ts'
import { findDelivery, listDeliveries } from '../delivery/history.ts'
import type { Attempt, Delivery } from '../delivery/history.ts'
import type { Queue } from '../delivery/queue.ts'
import type { EventTypes } from '../events/catalogue.ts'
import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'
import type { Database } from '../store/database.ts'
import { envelopeOf } from '../timeline/model.ts'
import { readAnswer } from './courier.ts'
import type { WebhookDelivery, WebhookDeliveryWithRequest } from './model.ts'
import { webhookTest } from './model.ts'
import { kind, rowOf } from './row.ts'
import type { Load, WebhookRow } from './row.ts'

interface Parts {
  database: Database
  clock: Clock
  cursors: Cursors
  events: EventLog
  types: EventTypes
  queue: Queue
}

/** What was sent to each webhook, and what it answered. */
export class WebhookDeliveries {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async list(
    caller: Caller,
    id: string,
    paging: Paging,
  ): Promise<{ data: WebhookDelivery[]; has_more: boolean; next_cursor: string | null }> {
    const { database, clock, cursors } = this.#parts
    await rowOf(database, clock, caller, id)
    const list = await listDeliveries(database, cursors, { kind, lane: id, account: caller.account_id }, paging)
    return { ...list, data: list.data.map(shown) }
  }

  /** One with its request; the body is there for who may read such an event. */
  async get(caller: Caller, id: string, deliveryId: string): Promise<WebhookDeliveryWithRequest> {
    const { database, clock, events } = this.#parts
    const { url } = await rowOf(database, clock, caller, id)
    const delivery = await findDelivery(database, { kind, lane: id }, deliveryId)
    const event = await events.find((delivery.load as Load).event_id)
    const body = event && this.#mayRead(caller, event) ? JSON.stringify(envelopeOf(event)) : null
    return { ...shown(delivery), request: { url, body } }
  }

  /** The same event with the same id once more, now, and from the beginning of the schedule. */
  redeliver(caller: Caller, id: string, deliveryId: string): Promise<WebhookDelivery> {
    const { database, clock, queue } = this.#parts
    return database.transaction(async (tx) => {
      requireActive(await rowOf(tx, clock, caller, id))
      await findDelivery(tx, { kind, lane: id }, deliveryId)
      if (!(await queue.again(tx, deliveryId))) throw conflict('An attempt is under way.', { code: 'delivery_under_way' })
      return shown(await findDelivery(tx, { kind, lane: id }, deliveryId))
    })
  }

  /** An event of its own, for this webhook alone. */
  test(caller: Caller, id: string): Promise<WebhookDelivery> {
    const { database, clock, events, queue } = this.#parts
    return database.transaction(async (tx) => {
      const { account_id, identity_id, ...webhook } = await rowOf(tx, clock, caller, id)
      requireActive(webhook)
      const event = await events.append(tx, webhookTest, { account_id, identity_id, data: { webhook_id: id } })
      const load: Load = { webhook_id: id, event_id: event.id, event: event.type }
      return shown(await findDelivery(tx, { kind, lane: id }, await queue.enqueue(tx, { kind, lane: id, account_id, load })))
    })
  }

  #mayRead(caller: Caller, { type, identity_id }: Event): boolean {
    if (caller.identity_id !== null && caller.identity_id !== identity_id) return false
    return this.#parts.types.visibleTo(caller).includes(type)
  }
}

function requireActive({ active }: Pick<WebhookRow, 'active'>): void {
  if (active !== 1) throw conflict('The webhook is switched off; set active to true first.', { code: 'webhook_inactive' })
}

const statuses = { waiting: 'pending', running: 'pending', done: 'delivered', failed: 'failed' } as const

function shown(delivery: Delivery): WebhookDelivery {
  const { webhook_id, event_id, event } = delivery.load as Load
  const attempts = delivery.attempts.map(attemptShown)
  const last = attempts.findLast(({ ended_at }) => ended_at !== null)
  return {
    id: delivery.id,
    webhook_id,
    event_id,
    event,
    status: statuses[delivery.state],
    attempts,
    response_status: last?.response_status ?? null,
    response_body: last?.response_body ?? null,
    next_attempt_at: delivery.state === 'waiting' ? delivery.due_at : null,
    created_at: delivery.created_at,
  }
}

const outcomes = { done: 'delivered', failed: 'failed', deferred: 'failed', interrupted: 'interrupted' } as const

function attemptShown({ number, started_at, ended_at, outcome, answer }: Attempt): WebhookDelivery['attempts'][number] {
  const { status, body, error } = readAnswer(answer)
  return {
    number,
    status: outcome === null ? 'pending' : outcomes[outcome],
    started_at,
    ended_at,
    response_status: status,
    response_body: body,
    error,
  }
}
