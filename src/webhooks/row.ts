import { type Clock, iso } from '../core/clock.ts'
import { notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { SealedColumn } from '../core/seal/seal.ts'
import { picked } from '../core/shapes.ts'
import type { EventLog } from '../events/log.ts'
import type { EventHeader } from '../events/model.ts'
import { type Reader, sql, type Sql, type Transaction } from '../store/database.ts'
import { type Webhook, webhookDisabled, WebhookEventData } from './model.ts'
import type { Sealed } from './signature.ts'

/** The kind of its deliveries in the queue; the lane is the webhook's id. */
export const kind = 'webhook'

/** The payload in the queue. */
export interface WebhookLoad {
  webhook_id: string
  event_id: string
  event: string
}

export interface WebhookRow extends Omit<Webhook, 'events' | 'active' | 'headers'> {
  seq: number
  account_id: string
  events: string
  scopes: string
  active: number
  headers: Uint8Array | null
  secret: Uint8Array
  previous_secret: Uint8Array | null
  previous_expires_at: string | null
  after_seq: number
}

/** Each is bound to its webhook. */
export const sealedTexts: SealedColumn[] = ['headers', 'secret', 'previous_secret'].map((column) => ({
  table: 'webhooks',
  column,
  key: ['seq'],
  context: ({ id }) => String(id),
}))

/** The current row of a webhook the caller may see; throws Fault not_found. A key bound to an identity sees only its webhooks. */
export async function rowOf(reader: Reader, clock: Clock, caller: Caller, id: string): Promise<WebhookRow> {
  const row = await reader.get<WebhookRow>(sql`SELECT * FROM webhooks WHERE id = ${id} AND account_id = ${caller.account_id}`)
  if (!row || (caller.identity_id !== null && row.identity_id !== caller.identity_id)) throw notFound('webhook')
  return asOf(row, clock.now())
}

/** A row at a time: a webhook whose key has ended is disabled, also before the sweep stores that. */
export function asOf(row: WebhookRow, now: number): WebhookRow {
  if (row.active !== 1 || row.expires_at === null || row.expires_at > iso(now)) return row
  return { ...row, active: 0, disabled_at: row.expires_at, disabled_reason: 'key_ended' }
}

/** The deliveries of an event to those of these webhooks that were created before it. */
export function deliveriesOf(
  { seq, id, type, account_id }: Pick<EventHeader, 'seq' | 'id' | 'type' | 'account_id'>,
  webhooks: readonly Pick<WebhookRow, 'id' | 'after_seq'>[],
): { kind: string; account_id: string; deliveries: { lane: string; load: WebhookLoad }[] } {
  const deliveries = webhooks
    .filter(({ after_seq }) => after_seq < seq)
    .map((webhook) => ({ lane: webhook.id, load: { webhook_id: webhook.id, event_id: id, event: type } }))
  return { kind, account_id, deliveries }
}

/** The condition of webhooks that are active at a time. */
export function listening(now: number): Sql {
  return sql`active = 1 AND (expires_at IS NULL OR expires_at > ${iso(now)})`
}

/** Disables webhooks for an internal reason, and emits events. */
export async function disable(
  tx: Transaction,
  events: EventLog,
  now: number,
  row: WebhookRow,
  reason: NonNullable<Webhook['disabled_reason']>,
): Promise<void> {
  const at = iso(now)
  await tx.run(
    sql`UPDATE webhooks SET active = 0, disabled_at = ${at}, disabled_reason = ${reason}, updated_at = ${at} WHERE id = ${row.id}`,
  )
  const { account_id, identity_id } = row
  const data = toEventData({ ...row, active: 0, disabled_at: at, disabled_reason: reason, updated_at: at })
  await events.append(tx, webhookDisabled, { account_id, identity_id, data })
}

export function toWebhook(row: WebhookRow, sealed: Sealed): Webhook {
  return { ...toEventData(row), headers: readHeaders(row, sealed) }
}

export function sealHeaders(sealed: Sealed, id: string, headers: Record<string, string>): Buffer | null {
  return Object.keys(headers).length === 0 ? null : sealed.write(id, JSON.stringify(headers))
}

export function readHeaders({ id, headers }: Pick<WebhookRow, 'id' | 'headers'>, sealed: Sealed): Record<string, string> {
  return headers === null ? {} : (JSON.parse(sealed.read(id, headers)) as Record<string, string>)
}

export function toEventData(row: WebhookRow): WebhookEventData {
  return picked(WebhookEventData, { ...row, events: JSON.parse(row.events) as string[], active: row.active === 1 })
}
