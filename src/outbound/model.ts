import * as z from 'zod'
import type { Scope } from '../core/scopes.ts'
import { Id, Timestamp, TimestampInput } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'
import { Delivery, Email, Label } from '../mail/model.ts'

/** Maximum number of recipients of a message, all fields together. */
export const maxRecipients = 100

/** Maximum bytes of a composed message. */
export const largestMessage = 25 * 1024 * 1024

/** Maximum bytes of its text and HTML together, as given. */
export const largestBodies = 4 * 1024 * 1024

const Recipients = z
  .union([z.string().max(1000), z.array(z.string().max(1000)).min(1).max(maxRecipients)], {
    error: 'must be an address such as ada@example.com, or a list of them',
  })
  .meta({ id: 'Recipients', description: 'an address, also as Name <address>, or a list of them' })

const NewAttachment = z
  .strictObject({
    filename: z.string().min(1).max(255),
    content_type: z.string().min(3).max(255).optional().meta({ description: 'derived from the name if omitted' }),
    content: z.string().optional().meta({ description: 'base64' }),
    url: z
      .string()
      .max(2048)
      .optional()
      .meta({ description: 'fetched during the call, instead of content; https, public addresses only' }),
    content_id: z.string().min(1).max(250).optional().meta({ description: 'for an inline image: <img src="cid:…">' }),
  })
  .meta({ id: 'NewAttachment' })
export type NewAttachment = z.output<typeof NewAttachment>

const contents = {
  from: z.string().max(1000).optional().meta({
    description:
      'an address of the identity: its own, an alias, or any of a domain whose catch-all it is. Default: the address that received the e-mail replied to, else its own',
  }),
  body_text: z.string().optional(),
  body: z.string().optional().meta({ description: 'the same as body_text' }),
  body_html: z.string().optional(),
  reply_to: Recipients.optional(),
  headers: z
    .record(z.string().min(1).max(100), z.string().max(10_000))
    .meta({
      id: 'HeaderFields',
      description: 'additional header fields, at most 100 and 64 KiB in total; not those that the box sets',
    })
    .optional(),
  attachments: z.array(NewAttachment).max(100).optional(),
  labels: z.array(Label).max(50).optional(),
  send_at: TimestampInput.optional().meta({ description: 'not before this time, at most a year ahead' }),
  auto_submitted: z
    .enum(['no', 'auto-generated', 'auto-replied'])
    .meta({ id: 'AutoSubmitted', description: 'Auto-Submitted (RFC 3834): whether a program sent it automatically' })
    .optional(),
  require_tls: z
    .boolean()
    .optional()
    .meta({ description: 'sends only over verified TLS at every hop (REQUIRETLS, RFC 8689); otherwise it bounces' }),
}

/** A message to send. */
export const NewEmail = z
  .strictObject({
    to: Recipients,
    cc: Recipients.optional(),
    bcc: Recipients.optional(),
    subject: z.string().max(10_000).optional(),
    in_reply_to: Id('email').optional().meta({ description: 'the e-mail to reply to' }),
    ...contents,
  })
  .meta({ id: 'NewEmail' })
export type NewEmail = z.output<typeof NewEmail>

export const NewReply = z
  .strictObject({
    reply_all: z.boolean().optional(),
    allow_unsigned: z.boolean().optional().meta({
      description:
        'also sends to addresses that the verified sender did not sign: a Reply-To whose reply_to_verified is false and, with reply_all, those of an unsigned To or Cc',
    }),
    cc: Recipients.optional(),
    bcc: Recipients.optional(),
    subject: z.string().max(10_000).optional(),
    quote: z.boolean().optional().meta({ description: 'quotes the message replied to below the text; default true' }),
    ...contents,
  })
  .meta({ id: 'NewReply' })
export type NewReply = z.output<typeof NewReply>

export const NewForward = z
  .strictObject({
    to: Recipients,
    cc: Recipients.optional(),
    bcc: Recipients.optional(),
    subject: z.string().max(10_000).optional(),
    as_attachment: z
      .boolean()
      .optional()
      .meta({ description: 'attaches the complete message as message/rfc822 instead of quoting it' }),
    ...contents,
  })
  .meta({ id: 'NewForward' })
export type NewForward = z.output<typeof NewForward>

export const Suppression = z
  .object({
    id: Id('sup'),
    email: z.string(),
    reason: z.string(),
    source: z.enum(['manual', 'bounce', 'complaint']),
    email_id: Id('email').nullable().meta({ description: 'the message that bounced or got a complaint' }),
    created_at: Timestamp,
  })
  .meta({ id: 'Suppression' })
export type Suppression = z.output<typeof Suppression>

export const NewSuppression = z
  .strictObject({ email: z.string().min(3).max(320), reason: z.string().max(500).optional() })
  .meta({ id: 'NewSuppression' })
export type NewSuppression = z.output<typeof NewSuppression>

/** The data of an event about one recipient: the message and the delivery to that recipient. */
const EmailWithDelivery = z.object({ ...Email.shape, delivery: Delivery })

/** Any one of these reads e-mails. */
export const readers: Scope[] = ['messages:read', 'emails:read']

export const emailQueued = eventType('email.queued', readers, 'A message was accepted for sending.', Email)
export const emailSent = eventType('email.sent', readers, 'A relay accepted a message for a recipient.', EmailWithDelivery)
export const emailDelivered = eventType('email.delivered', readers, "A recipient's server accepted a message.", EmailWithDelivery)
export const emailDeferred = eventType(
  'email.deferred',
  readers,
  'A message was deferred: after the first attempt, and after four hours.',
  EmailWithDelivery,
)
export const emailBounced = eventType('email.bounced', readers, 'A message was rejected for a recipient.', EmailWithDelivery)
export const emailComplained = eventType(
  'email.complained',
  readers,
  'A recipient marked a message as spam (RFC 5965).',
  EmailWithDelivery,
)
export const emailFailed = eventType(
  'email.failed',
  readers,
  'Delivery to a recipient failed: it was not possible for five days, or the box rejects it.',
  EmailWithDelivery,
)
export const emailCancelled = eventType('email.cancelled', readers, 'A message was cancelled before it was sent.', Email)

export const emailHeld = eventType('email.held', readers, 'A message waits for a person before it leaves.', Email)
export const emailApproved = eventType('email.approved', readers, 'A held message was approved, and is sent.', Email)
export const emailRejected = eventType('email.rejected', readers, 'A held message was rejected: it is not sent.', Email)
export const emailExpired = eventType('email.expired', readers, 'Nobody approved a held message in time: it is not sent.', Email)

/** The kind of the deliveries in the queue. */
export const emailKind = 'email'

/** The copy of a message for one recipient, by its row. */
export interface EmailLoad {
  recipient_seq: number
  /** Only over checked TLS all the way (REQUIRETLS, RFC 8689). */
  require_tls?: true
  /** A policy let it leave because the recipient is of the account: it goes nowhere else. */
  own?: true
}

/** The kind of scheduled messages in the queue. */
export const releaseKind = 'email-release'

/** One delivery for the whole message; when it is due, a copy for each recipient is enqueued. */
export interface ReleaseLoad {
  email_id: string
  require_tls: boolean
}
