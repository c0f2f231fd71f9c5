import type { Basis } from '../basis.ts'
import { conflict, Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Page, Paging } from '../core/shapes.ts'
import { type Attempt, findDelivery, listDeliveries, type QueuedDelivery } from '../queue/history.ts'
import type { Queue } from '../queue/queue.ts'
import type { Event } from '../events/model.ts'
import { type Database, type Reader, sql } from '../store/database.ts'
import { envelopeOf } from '../timeline/model.ts'
import { readAnswer } from './courier.ts'
import type { EventNames } from './event-names.ts'
import { waitingEventIds } from './fanout-backlog.ts'
import { type WebhookDelivery, type WebhookDeliveryWithRequest, webhookTest } from './model.ts'
import { kind, rowOf, type WebhookLoad, type WebhookRow } from './row.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors' | 'events' | 'types'> {
  names: EventNames
  queue: Queue
}

export class WebhookDeliveries {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async list(caller: Caller, id: string, paging: Paging): Promise<Page<WebhookDelivery>> {
    const { database, clock, cursors } = this.#deps
    await rowOf(database, clock, caller, id)
    const list = await listDeliveries(database, cursors, { kind, lane: id, account: caller.account_id }, paging)
    return { ...list, data: list.data.map((delivery) => this.#present(caller, delivery)) }
  }

  /** A delivery with its request; the body requires the scope of its event. */
  async get(caller: Caller, id: string, deliveryId: string): Promise<WebhookDeliveryWithRequest> {
    const { database, clock, events } = this.#deps
    const { url } = await rowOf(database, clock, caller, id)
    const delivery = await findDelivery(database, { kind, lane: id }, deliveryId)
    const event = await events.find((delivery.load as WebhookLoad).event_id)
    const body = event && this.#mayRead(caller, event) ? JSON.stringify(envelopeOf(event)) : null
    return { ...this.#present(caller, delivery), request: { url, body } }
  }

  /** Sends the same event with the same id again, now, with a new retry schedule. The caller must be able to read it. */
  redeliver(caller: Caller, id: string, deliveryId: string): Promise<WebhookDelivery> {
    const { database, clock, queue } = this.#deps
    return database.transaction(async (tx) => {
      const webhook = await rowOf(tx, clock, caller, id)
      requireActive(webhook)
      const { load } = await findDelivery(tx, { kind, lane: id }, deliveryId)
      await this.#requireSendable(tx, caller, webhook, load as WebhookLoad)
      if (!(await queue.retry(tx, deliveryId))) throw conflict('An attempt is running.', { code: 'delivery_under_way' })
      return this.#present(caller, await findDelivery(tx, { kind, lane: id }, deliveryId))
    })
  }

  test(caller: Caller, id: string): Promise<WebhookDelivery> {
    const { database, clock, events, queue } = this.#deps
    return database.transaction(async (tx) => {
      const { account_id, identity_id, ...webhook } = await rowOf(tx, clock, caller, id)
      requireActive(webhook)
      const event = await events.append(tx, webhookTest, { account_id, identity_id, data: { webhook_id: id } })
      const load: WebhookLoad = { webhook_id: id, event_id: event.id, event: event.type }
      return this.#present(
        caller,
        await findDelivery(tx, { kind, lane: id }, await queue.enqueue(tx, { kind, lane: id, account_id, load })),
      )
    })
  }

  /**
   * Throws Fault conflict, code `event_gone` or, for an event that the webhook does not receive any more, `event_not_wanted`; forbidden, code `missing_scope`,
   * for one that the caller may not read.
   */
  async #requireSendable(reader: Reader, caller: Caller, webhook: WebhookRow, load: WebhookLoad): Promise<void> {
    const { events, names, types } = this.#deps
    const [event] = await events.headers(0, 1, sql`id = ${load.event_id}`, reader)
    if (!event) throw conflict('The event is no longer in the log, and cannot be sent again.', { code: 'event_gone' })
    if (event.type === webhookTest.name) return
    if (!names.sentTo(webhook, event)) {
      throw conflict(`The webhook does not receive this ${event.type} any more. Change its events or identity_id first.`, {
        code: 'event_not_wanted',
      })
    }
    if (this.#mayRead(caller, event)) return
    const scopes = types.published().get(event.type) ?? []
    throw new Fault('forbidden', `Sending ${event.type} again requires a key with the scope ${scopes.join(' or ')}.`, {
      code: 'missing_scope',
    })
  }

  /** A delivery as a caller may see it: what an endpoint answers may repeat the event that it was sent. */
  #present(caller: Caller, delivery: QueuedDelivery): WebhookDelivery {
    const presented = toWebhookDelivery(delivery)
    if (this.#deps.types.visibleTo(caller).includes(presented.event)) return presented
    const attempts = presented.attempts.map((attempt) => ({ ...attempt, response_body: null }))
    return { ...presented, attempts, response_body: null }
  }

  #mayRead(caller: Caller, { type, identity_id }: Pick<Event, 'type' | 'identity_id'>): boolean {
    if (caller.identity_id !== null && caller.identity_id !== identity_id) return false
    return this.#deps.types.visibleTo(caller).includes(type)
  }
}

function requireActive({ active }: Pick<WebhookRow, 'active'>): void {
  if (active !== 1) throw conflict('The webhook is disabled; set active to true first.', { code: 'webhook_inactive' })
}

const statuses = { waiting: 'pending', running: 'pending', done: 'delivered', failed: 'failed' } as const

function toWebhookDelivery(delivery: QueuedDelivery): WebhookDelivery {
  const { webhook_id, event_id, event } = delivery.load as WebhookLoad
  const attempts = delivery.attempts.map(toAttempt)
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

function toAttempt({ number, started_at, ended_at, outcome, answer }: Attempt): WebhookDelivery['attempts'][number] {
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

const page = 1000

const deadline = 60_000

/** The events of unfinished deliveries, and of those to be created, which retention must keep. */
export async function pendingEventIds(database: Pick<Database, 'slow'>): Promise<Set<string>> {
  const ids = new Set(await waitingEventIds(database, deadline))
  for (let seq = 0; ;) {
    const rows = await database.slow<{ seq: number; load: string }>(
      // an expression: in the order of `seq`, by which each page begins where the last one ended; an index by kind would be sorted for each
      sql`SELECT seq, load FROM deliveries_queue WHERE kind || '' = ${kind} AND state IN ('waiting', 'running') AND seq > ${seq}
        ORDER BY seq LIMIT ${page}`,
      deadline,
    )
    for (const { load } of rows) ids.add((JSON.parse(load) as WebhookLoad).event_id)
    if (rows.length < page) return ids
    seq = rows.at(-1)!.seq
  }
}
