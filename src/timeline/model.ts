import * as z from 'zod'
import { isId } from '../core/ids.ts'
import { Count, Flag, Id, Json, Page, Paging, Timestamp, TimestampInput } from '../core/shapes.ts'
import type { Event } from '../events/model.ts'
import { Email, Link } from '../mail/model.ts'
import { Sms } from '../sms/model.ts'

/** The envelope of an event, the same with the same id on every channel. */
export const EventEnvelope = z
  .object({
    id: Id('evt'),
    event: z.string().meta({ example: 'email.received' }),
    type: z.string().meta({ description: 'the same as event' }),
    identity_id: Id('ident').nullable(),
    created_at: Timestamp,
    data: z.record(z.string(), Json).meta({ description: 'the whole resource' }),
  })
  .meta({ id: 'Event' })
export type EventEnvelope = z.output<typeof EventEnvelope>

export function envelopeOf(event: Event): EventEnvelope {
  const { id, type, identity_id, created_at } = event
  return { id, event: type, type, identity_id, created_at, data: event.data as EventEnvelope['data'] }
}

const since = z
  .string()
  .transform((text, context) => {
    const time = isId('evt', text) ? { data: text } : TimestampInput.safeParse(text)
    if (time.data !== undefined) return time.data
    const message = 'must be an evt_ id, or an ISO 8601 time such as 2026-11-20T10:05:00Z'
    context.issues.push({ code: 'custom', message, input: text })
    return z.NEVER
  })
  .optional()
  .meta({ description: 'an evt_ id or a time; from there, oldest first', override: { type: 'string' } })

export const EventFilter = z.strictObject({
  ...Paging.shape,
  type: z.string().min(1).max(64).optional().meta({
    description: 'an event name, such as email.received, or the type of a report, such as positive; an unknown name is rejected',
  }),
  since,
})
export type EventFilter = z.output<typeof EventFilter>

export const FeedFilter = z.strictObject({
  limit: Paging.shape.limit,
  cursor: Paging.shape.cursor,
  since,
  types: z
    .string()
    .min(1)
    .max(2000)
    .transform((text) => text.split(',').map((name) => name.trim()))
    .optional()
    .meta({ description: 'event names, separated by commas; default: all that the key may read', override: { type: 'string' } }),
  identity_id: Id('ident').optional().meta({ description: 'only events of this identity' }),
  wait: Count(0, 120, 0).meta({
    description: 'seconds to wait for an event where there is none yet; without since only what happens from now on',
  }),
})
export type FeedFilter = z.output<typeof FeedFilter>

export const FeedPage = z
  .object({
    ...Page(EventEnvelope).shape,
    since: z.string().nullable().meta({
      description:
        'pass it as since in the next call, once has_more is false, to get every later event exactly once; null on later pages of newest first',
    }),
  })
  .meta({ id: 'EventFeed' })
export type FeedPage = z.output<typeof FeedPage>

export const Message = z
  .discriminatedUnion('type', [
    z.object({ ...Email.shape, type: z.literal('email') }).meta({ id: 'EmailMessage' }),
    z.object({ ...Sms.shape, type: z.literal('sms') }).meta({ id: 'SmsMessage' }),
  ])
  .meta({ id: 'Message' })
export type Message = z.output<typeof Message>

export const WaitFilter = z.strictObject({
  channel: z.enum(['email', 'sms', 'any']).default('any'),
  since,
  from: z
    .string()
    .min(1)
    .max(320)
    .optional()
    .meta({ description: 'part of the sender’s address, name (its first 1,000 characters) or number' }),
  subject_contains: z
    .string()
    .min(1)
    .max(998)
    .optional()
    .meta({ description: 'part of the first 1,000 characters of the subject' }),
  timeout: Count(0, 120, 60).meta({ description: 'seconds to wait' }),
  spam: Flag.default(false).meta({ description: 'also returns spam' }),
})
export type WaitFilter = z.output<typeof WaitFilter>

export const WaitAnswer = z
  .object({
    timed_out: z.boolean(),
    since: z.string().nullable().meta({ description: 'pass it as since in the next call to get every message exactly once' }),
    item: Message.nullable(),
    codes: z.array(z.string()),
    links: z.array(Link),
  })
  .meta({ id: 'WaitAnswer' })
export type WaitAnswer = z.output<typeof WaitAnswer>
