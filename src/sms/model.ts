import * as z from 'zod'
import type { Scope } from '../core/scopes.ts'
import { Country, Flag, HoldState, Id, Line, Paging, Timestamp, TimestampInput } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

export const SmsStatus = z.enum(['received', 'held', 'queued', 'sent', 'delivered', 'failed', 'unknown'])
export type SmsStatus = z.output<typeof SmsStatus>

/** A media file of a message. */
export const SmsMedia = z
  .object({
    index: z.int(),
    content_type: z.string(),
    status: z.enum(['pending', 'kept', 'failed']).meta({ description: 'pending while it is fetched from the provider' }),
    size: z.int().nullable(),
    sha256: z.string().nullable(),
  })
  .meta({ id: 'SmsMedia' })
export type SmsMedia = z.output<typeof SmsMedia>

export const SmsMediaWithUrl = z
  .object({ ...SmsMedia.shape, url: z.string(), expires_at: Timestamp })
  .meta({ id: 'SmsMediaWithUrl' })
export type SmsMediaWithUrl = z.output<typeof SmsMediaWithUrl>

/** Why a message failed or arrived damaged, in the provider's words. */
export const SmsError = z.object({ code: z.string(), message: z.string() }).meta({ id: 'SmsError' })
export type SmsError = z.output<typeof SmsError>

/** A text message, sent or received. */
export const Sms = z
  .object({
    id: Id('sms'),
    identity_id: Id('ident'),
    direction: z.enum(['inbound', 'outbound']),
    status: SmsStatus.meta({
      description:
        'held: a person is to approve it first; sent: accepted by the provider; unknown: its response was lost, and the message is not resent automatically',
    }),
    from: z.string(),
    to: z.string(),
    body: z.string(),
    read: z.boolean(),
    provider: z.string(),
    provider_id: z.string().nullable(),
    segments: z.int().meta({ description: 'number of segments: each 160 or 153 characters of GSM-7, 70 or 67 of UCS-2' }),
    error: SmsError.nullable(),
    media: z.array(SmsMedia),
    codes: z.array(z.string()).meta({ description: 'one-time codes, best first' }),
    hold: HoldState.nullable().default(null).meta({
      description: 'of a message that a policy held for a person, and what became of that; null of others',
    }),
    received_at: Timestamp,
    sent_at: Timestamp.nullable(),
    delivered_at: Timestamp.nullable(),
    created_at: Timestamp,
    deleted_at: Timestamp.optional().meta({ description: 'time of deletion; only in the trash' }),
  })
  .meta({ id: 'Sms' })
export type Sms = z.output<typeof Sms>

const E164 = z.string().regex(/^\+[1-9]\d{6,14}$/, { error: 'must be a number in E.164 form, such as +15550100123' })
const maxLength = 1600
const Body = z
  .string()
  .refine((text) => text.length > 0 && text.length <= 2 * maxLength && Array.from(text).length <= maxLength, {
    error: `must have 1 to ${maxLength} characters`,
  })
  // eslint-disable-next-line no-control-regex
  .refine((text) => text.isWellFormed() && !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(text), {
    error: 'must be text without control characters',
  })
  .meta({ minLength: 1, maxLength })

export const NewSms = z.strictObject({ to: E164, body: Body }).meta({ id: 'NewSms' })
export type NewSms = z.output<typeof NewSms>

export const SmsChange = z
  .strictObject({ read: z.boolean().optional(), unread: z.boolean().optional() })
  .meta({ id: 'SmsChange' })
export type SmsChange = z.output<typeof SmsChange>

export const SmsFilter = z.strictObject({
  ...Paging.shape,
  unread: Flag.optional(),
  direction: z.enum(['inbound', 'outbound', 'all']).default('all'),
  from: z.string().min(1).max(64).optional().meta({ description: 'part of the sender’s number' }),
  to: z.string().min(1).max(64).optional().meta({ description: 'part of the recipient’s number' }),
  after: TimestampInput.optional().meta({ description: 'received after this time' }),
  before: TimestampInput.optional().meta({ description: 'received before this time' }),
  trash: Flag.default(false).meta({ description: 'list deleted messages that can be restored, instead of the others' }),
})
export type SmsFilter = z.output<typeof SmsFilter>

export const PhoneInput = z.strictObject({ country: Country.optional() }).meta({ id: 'PhoneWish' })

/** A message injected into the loopback provider. */
export const InjectedSms = z
  .strictObject({
    from: Line(64),
    to: E164,
    body: Body,
    media: z
      .array(
        z.strictObject({
          content_type: z.string().regex(/^[\w.+-]{1,60}\/[\w.+-]{1,60}$/, { error: 'must be a media type such as image/png' }),
          content: z.base64({ error: 'must be base64' }).max(700_000),
        }),
      )
      .max(10)
      .optional(),
  })
  .meta({ id: 'InjectedSms' })
export type InjectedSms = z.output<typeof InjectedSms>

/** A number of an identity. */
export const PhoneNumber = z
  .object({
    id: Id('phone'),
    identity_id: Id('ident').nullable(),
    phone_number: z.string(),
    country: z.string(),
    provider: z.string(),
  })
  .meta({ id: 'PhoneNumber' })
export type PhoneNumber = z.output<typeof PhoneNumber>

const readers: Scope[] = ['messages:read', 'sms:read']

export const smsReceived = eventType('sms.received', readers, 'A text message was received.', Sms)
export const smsSent = eventType('sms.sent', readers, 'The provider accepted a text message.', Sms)
export const smsDelivered = eventType('sms.delivered', readers, 'A text message was delivered to the phone.', Sms)
export const smsHeld = eventType('sms.held', readers, 'A text message waits for a person before it leaves.', Sms)
export const smsApproved = eventType('sms.approved', readers, 'A held text message was approved, and is sent.', Sms)
export const smsRejected = eventType('sms.rejected', readers, 'A held text message was rejected: it is not sent.', Sms)
export const smsExpired = eventType('sms.expired', readers, 'Nobody approved a held text message in time: it is not sent.', Sms)
export const smsFailed = eventType('sms.failed', readers, 'A text message could not be sent or delivered.', Sms)
export const phoneProvisioned = eventType('phone.provisioned', ['identities:read'], 'An identity got a number.', PhoneNumber)
export const phoneReleased = eventType(
  'phone.released',
  ['identities:read'],
  'A number was released to the provider.',
  PhoneNumber,
)
