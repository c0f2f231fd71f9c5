import * as z from 'zod'
import { MadeBy, Maker } from '../accounts/model.ts'
import { Id, Paging, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

const Url = z
  .string()
  .min(1)
  .max(2048, { error: 'must be at most 2048 characters' })
  .meta({ description: 'https, without credentials, at a public address; the operator may allow more' })

const Events = z
  .array(z.string().min(1).max(64))
  .min(1, { error: 'must name at least one event, or *' })
  .max(64)
  .transform((names) => [...new Set(names)])
  .meta({
    override: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 64 }, minItems: 1, maxItems: 64 },
    description: 'names of events, such as email.received; * for all events that the creating key may read',
  })

/** Headers that HTTP, the signature or Pillarbox set. */
const ours = new Set(
  'accept-encoding connection content-encoding content-length content-type cookie expect host keep-alive te trailer transfer-encoding upgrade user-agent'.split(
    ' ',
  ),
)

const Headers = z
  .record(
    z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/, { error: 'must be a header name' }),
    z.string().regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,1022}[\x21-\x7e])?$/, {
      error: 'must be 1 to 1024 printable ASCII characters, no space at either end',
    }),
  )
  .refine((headers) => Object.keys(headers).length <= 20, { error: 'must be at most 20' })
  .refine(
    (headers) =>
      Object.keys(headers).every((name) => !ours.has(name.toLowerCase()) && !/^(?:webhook-|x-service-|proxy-)/i.test(name)),
    {
      error: `must not set ${[...ours].join(', ')}, nor any of webhook-*, x-service-* and proxy-*`,
    },
  )
  .refine((headers) => new Set(Object.keys(headers).map((name) => name.toLowerCase())).size === Object.keys(headers).length, {
    error: 'must not contain a header twice',
  })
  .meta({ override: { type: 'object', additionalProperties: { type: 'string' } }, description: 'sent with every delivery' })

const Description = z.string().max(500)

const Secret = z
  .string()
  .refine(isSecret, {
    error: 'must be 16 to 256 printable ASCII characters; after whsec_, base64 of 16 bytes or more is required',
  })
  .meta({ override: { type: 'string', minLength: 16, maxLength: 256 } })

/** A webhook, without its secret. */
export const Webhook = z
  .object({
    id: Id('whk'),
    url: z.string(),
    events: z.array(z.string()),
    active: z.boolean(),
    identity_id: Id('ident').nullable().meta({ description: 'only events of this identity' }),
    description: z.string().nullable(),
    headers: z.record(z.string(), z.string()),
    failing_since: Timestamp.nullable().meta({ description: 'time of the first failed attempt since the last success' }),
    disabled_at: Timestamp.nullable(),
    disabled_reason: z.enum(['gone', 'failing', 'identity_deleted', 'key_ended']).nullable().meta({
      description:
        'why the box disabled it: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended',
    }),
    created_at: Timestamp,
    created_by: Maker,
    updated_at: Timestamp,
    updated_by: Maker.meta({
      description: 'the key or session that last changed its url, events or secret; null if unchanged since its creation',
    }),
    expires_at: Timestamp.nullable().meta({
      description: 'time at which it ends with the key that created it; null if it does not expire',
    }),
  })
  .meta({ id: 'Webhook' })
export type Webhook = z.output<typeof Webhook>

/** The response with the secret: on creation and rotation. */
export const WebhookWithSecret = z
  .object({ ...Webhook.shape, secret: z.string().meta({ description: 'returned only once' }) })
  .meta({ id: 'WebhookWithSecret' })

export const NewWebhook = z
  .strictObject({
    url: Url,
    events: Events,
    secret: Secret.optional().meta({ description: 'generated if omitted' }),
    active: z.boolean().default(true),
    identity_id: Id('ident').nullish().meta({ description: 'only events of this identity' }),
    description: Description.nullish(),
    headers: Headers.optional(),
  })
  .meta({ id: 'NewWebhook' })
export type NewWebhook = z.output<typeof NewWebhook>

export const WebhookChange = z
  .strictObject({
    url: Url.optional(),
    events: Events.optional(),
    active: z.boolean().optional(),
    identity_id: Id('ident').nullable().optional(),
    description: Description.nullable().optional(),
    headers: Headers.optional().meta({ description: 'replaces all of them' }),
  })
  .meta({ id: 'WebhookChange' })
export type WebhookChange = z.output<typeof WebhookChange>

export const SecretRotation = z
  .strictObject({ secret: Secret.optional().meta({ description: 'generated if omitted' }) })
  .meta({ id: 'SecretRotation' })

const Attempt = z.object({
  number: z.int(),
  status: z.enum(['pending', 'delivered', 'failed', 'interrupted']),
  started_at: Timestamp,
  ended_at: Timestamp.nullable(),
  response_status: z.int().nullable(),
  response_body: z.string().nullable(),
  error: z.string().nullable(),
})

/** The delivery of one event to one webhook. */
export const WebhookDelivery = z
  .object({
    id: Id('dlv'),
    webhook_id: Id('whk'),
    event_id: Id('evt'),
    event: z.string(),
    status: z.enum(['pending', 'delivered', 'failed']),
    attempts: z.array(Attempt).meta({ description: 'oldest first; a redelivery keeps the last 50' }),
    response_status: z.int().nullable().meta({ description: 'of the last finished attempt' }),
    response_body: z.string().nullable().meta({
      description:
        'the first KiB of the response; less if it has many control characters; null if the type of the event requires a scope that the caller lacks',
    }),
    next_attempt_at: Timestamp.nullable(),
    created_at: Timestamp,
  })
  .meta({ id: 'WebhookDelivery' })
export type WebhookDelivery = z.output<typeof WebhookDelivery>

export const WebhookDeliveryWithRequest = z
  .object({
    ...WebhookDelivery.shape,
    request: z
      .object({
        url: z.string().meta({ description: 'the present url of the webhook' }),
        body: z.string().nullable().meta({
          description:
            'the body of the request; null if the event is no longer in the log, or its type requires a scope that the caller lacks',
        }),
      })
      .meta({ description: 'the request of the next attempt; its headers and signature are created then' }),
  })
  .meta({ id: 'WebhookDeliveryWithRequest' })
export type WebhookDeliveryWithRequest = z.output<typeof WebhookDeliveryWithRequest>

export const WebhookFilter = Paging.extend(MadeBy.shape)
export type WebhookFilter = z.output<typeof WebhookFilter>

// headers may hold a receiver's secrets, and the event log is not encrypted
const { headers: _, ...told } = Webhook.shape
export const WebhookEventData = z.object(told).meta({ id: 'WebhookNoted', description: 'a webhook without its headers' })
export type WebhookEventData = z.output<typeof WebhookEventData>

const readers = ['account:read' as const]
export const webhookCreated = eventType('webhook.created', readers, 'A webhook was created.', WebhookEventData)
export const webhookUpdated = eventType('webhook.updated', readers, 'A webhook or its secret was changed.', WebhookEventData)
export const webhookDeleted = eventType('webhook.deleted', readers, 'A webhook was deleted.', WebhookEventData)
export const webhookDisabled = eventType(
  'webhook.disabled',
  ['identities:read'],
  'A webhook was disabled: it answered 410, failed for 5 days, its identity was deleted, or the key that created it ended.',
  WebhookEventData,
)
export const webhookTest = eventType(
  'webhook.test',
  ['identities:read'],
  'A test was requested; it is sent only to the tested webhook.',
  z.object({ webhook_id: Id('whk') }),
)

/** True if a given secret is valid: with our prefix it must be base64 of 16 to 192 bytes, as receivers decode it. */
function isSecret(text: string): boolean {
  if (!/^[\x20-\x7e]{16,256}$/.test(text)) return false
  if (!text.startsWith('whsec_')) return true
  const bytes = Buffer.from(text.slice(6), 'base64')
  return bytes.length >= 16 && bytes.toString('base64') === text.slice(6)
}
