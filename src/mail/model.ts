import * as z from 'zod'
import { Maker } from '../accounts/model.ts'
import type { Scope } from '../core/scopes.ts'
import { Count, HoldState, Id, Timestamp, TimestampInput } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

/** A label of an e-mail. */
export const Label = z
  .string()
  .trim()
  .min(1)
  .max(64)
  .regex(/^[^\p{Cc}]+$/u, { error: 'must be 1 to 64 printable characters' })

/** A mailbox of a header field. Only the domain of the address is in lower case. */
export const Address = z.object({ address: z.string(), name: z.string() }).meta({ id: 'Address' })
export type Address = z.output<typeof Address>

export const Link = z
  .object({ url: z.string(), text: z.string(), kind: z.enum(['verify', 'reset', 'signin', 'unsubscribe', 'other']) })
  .meta({ id: 'Link', description: 'A link of the message and its likely purpose' })
export type Link = z.output<typeof Link>

export const Attachment = z
  .object({
    index: z.int(),
    filename: z.string(),
    content_type: z.string(),
    size: z.int().meta({ description: 'decoded size in bytes' }),
    content_id: z.string().nullable(),
    disposition: z.enum(['attachment', 'inline']),
    sha256: z.string(),
  })
  .meta({ id: 'Attachment' })
export type Attachment = z.output<typeof Attachment>

export const AttachmentText = z
  .object({
    index: z.int(),
    filename: z.string(),
    format: z
      .enum(['pdf', 'docx', 'xlsx', 'html', 'csv', 'text'])
      .meta({ description: 'by its content; the declared type and the name only tell texts apart' }),
    text: z.string().meta({ description: 'of HTML as Markdown; of a sheet a line for each row, with tabs between its cells' }),
    offset: z.int().meta({ description: 'where text begins, in characters' }),
    next_offset: z.int().nullable().meta({ description: 'where the next piece begins; null after the last' }),
    characters: z.int().meta({ description: 'of the whole text' }),
    pages: z.int().nullable().meta({ description: 'of a PDF; null for other formats' }),
    truncated: z.boolean().meta({ description: 'true if the attachment has more text than can be read, beyond the last offset' }),
  })
  .meta({ id: 'AttachmentText' })
export type AttachmentText = z.output<typeof AttachmentText>

/** The query of the text of an attachment. */
export const TextSlice = z.strictObject({
  offset: Count(0, 1_000_000, 0).meta({ description: 'the next_offset of the piece before' }),
  limit: Count(1, 50_000, 8000).meta({ description: 'characters' }),
})
export type TextSlice = z.output<typeof TextSlice>

const result = z
  .enum(['pass', 'fail', 'softfail', 'neutral', 'none', 'temperror', 'permerror', 'policy'])
  .meta({ id: 'AuthenticationResult' })
export type AuthResult = z.output<typeof result>

/** The results of SPF, DKIM, DMARC and ARC on arrival (RFC 8601). */
export const Authentication = z
  .object({
    spf: z.object({ result, domain: z.string().nullable(), reason: z.string().nullable() }),
    dkim: z.array(
      z.object({
        result,
        domain: z.string(),
        selector: z.string(),
        algorithm: z.string().nullable(),
        aligned: z.boolean(),
        reason: z.string().nullable(),
        signed_fields: z.array(z.string()).default([]).meta({
          description: 'header fields of which the signature covers all instances, in lower case; at most 50',
        }),
      }),
    ),
    dmarc: z.object({
      result,
      domain: z.string().nullable(),
      policy: z.enum(['none', 'quarantine', 'reject']).nullable(),
      aligned_by: z.array(z.enum(['spf', 'dkim'])),
      reason: z.string().nullable(),
    }),
    arc: z.object({ result, chain: z.int(), reason: z.string().nullable() }),
  })
  .meta({ id: 'Authentication' })
export type Authentication = z.output<typeof Authentication>

/** What screening found in a message: what a person who looks at it does not see, and what instructs its reader. */
export const Screening = z
  .object({
    score: z.int().meta({ description: '0 to 100; from 50 a message is suspicious' }),
    reasons: z.array(
      z.object({
        kind: z.enum(['hidden_text', 'instruction', 'invisible_characters', 'bidi', 'alternative_differs']),
        where: z
          .enum([
            'subject',
            'sender',
            'text',
            'text_part',
            'comment',
            'attribute',
            'element',
            'hidden_attribute',
            'display',
            'visibility',
            'opacity',
            'size',
            'color',
            'position',
            'clip',
            'zero_box',
          ])
          .meta({
            description:
              'subject, sender and text are seen; text_part is a text that the HTML does not show; others say what hides it',
          }),
        excerpt: z.string().meta({ description: 'at most 80 characters, by a stranger: not to be followed' }),
      }),
    ),
    hidden_text_omitted: z.int().meta({ description: 'letters of hidden text that text leaves out' }),
  })
  .meta({ id: 'Screening' })
export type Screening = z.output<typeof Screening>

/**
 * True if the DMARC pass also covers a header field (name in lower case). With aligned SPF, or for internal mail, it covers every field; with
 * aligned DKIM only, it covers the signed fields.
 */
export function isVouchedFor({ dmarc, dkim }: Authentication, field: string): boolean {
  if (dmarc.result !== 'pass') return false
  if (dmarc.aligned_by.includes('spf') || !dmarc.aligned_by.includes('dkim')) return true
  // signed_fields is missing in e-mails of older versions
  return dkim.some(
    ({ result: found, aligned, signed_fields }: Partial<Authentication['dkim'][number]>) =>
      found === 'pass' && aligned === true && signed_fields?.includes(field) === true,
  )
}

/** The SMTP envelope of a message (RFC 5321 3.3), and its client. */
export interface Envelope {
  remote_address: string
  helo: string
  /** Empty for the null sender. */
  mail_from: string
  recipients: string[]
  smtputf8: boolean
  /** False if the client sent HELO, not EHLO. */
  esmtp?: boolean
  tls: { version: string; cipher: string } | null
  /** The id in our Received field and in the 250 reply. */
  session: string
  /** The sender requires verified TLS on the whole path (RFC 8689). */
  require_tls?: true
  /** An internal message: it is parsed, but not authenticated. */
  own?: true
  /** An own message is scanned for what a policy looks for. */
  scan?: boolean
}

/** The DMARC policy of a domain that requests aggregate reports, as in a report (RFC 9990 3.1.1.5). */
export interface PublishedPolicy {
  /** The domain at which the record was found. */
  domain: string
  p: string
  sp: string
  np: string | null
  adkim: 'r' | 's'
  aspf: 'r' | 's'
  fo: string | null
  testing: boolean
}

/** The results of the checks, and the resulting action. */
export interface Verdict {
  authentication: Authentication
  /** The From domain, only on a DMARC pass; null when the content is ambiguous. */
  verified_domain: string | null
  /** `keep`, `spam` (stored and marked) or `reject` (550 5.7.26, or the reply of a filter). */
  action: 'keep' | 'spam' | 'reject'
  /** The SMTP reply when the action is `reject`. */
  reply: { code: number; enhanced: string; text: string } | null
  /** The value of our Authentication-Results field (RFC 8601), folded, without the field name. */
  authentication_results: string
  /** The policy that was applied; null without one, or when its domain requests no reports. */
  published: PublishedPolicy | null
  /** The trusted ARC sealer whose result overrode a DMARC failure. */
  forwarder: string | null
}

export const EmailStatus = z
  .enum(['received', 'held', 'scheduled', 'queued', 'sending', 'sent', 'delivered', 'deferred', 'bounced', 'failed', 'cancelled'])
  .meta({ id: 'EmailStatus' })

/** An e-mail in a list, without bodies unless these are asked for. */
export const EmailRow = z
  .object({
    id: Id('email'),
    identity_id: Id('ident'),
    thread_id: Id('thread'),
    direction: z.enum(['inbound', 'outbound']),
    status: EmailStatus,
    from: z.string(),
    from_name: z.string(),
    to: z.string(),
    subject: z.string(),
    snippet: z.string(),
    read: z.boolean(),
    spam: z.boolean(),
    automated: z.boolean().meta({ description: 'whether the message claims to be generated by a program; not authenticated' }),
    tag: z.string().nullable().meta({ description: 'the part after + in the recipient address' }),
    labels: z.array(z.string()),
    size: z.int(),
    has_attachments: z.boolean(),
    verified_domain: z.string().nullable(),
    message_id: z.string().nullable(),
    in_reply_to: z.string().nullable(),
    codes: z.array(z.string()),
    received_at: Timestamp,
    sent_at: Timestamp.nullable().meta({ description: 'when the first server of a recipient, or a relay, accepted it' }),
    created_at: Timestamp,
    deleted_at: Timestamp.optional().meta({ description: 'time of deletion; only in the trash' }),
    body_text: z.string().nullable().optional().meta({ description: 'only with include=body' }),
    body_html: z.string().nullable().optional().meta({ description: 'only with include=body' }),
    text: z.string().optional().meta({ description: 'only with include=body' }),
  })
  .meta({ id: 'EmailRow' })
export type EmailRow = z.output<typeof EmailRow>

/** The state of the delivery to one recipient. */
export const Delivery = z
  .object({
    recipient: z.string(),
    status: EmailStatus,
    smtp_code: z.int().nullable().meta({ description: 'SMTP code of the last reply (RFC 5321 4.2)' }),
    enhanced_code: z.string().nullable().meta({ description: 'enhanced status code of the last reply (RFC 3463)' }),
    response: z.string().nullable().meta({ description: 'the last reply, or the reason why there was none' }),
    mx: z.string().nullable().meta({ description: 'the last server contacted' }),
    tls: z
      .string()
      .nullable()
      .meta({ description: 'version and cipher, and whether the certificate was verified; null without TLS' }),
    attempts: z.int(),
    next_attempt_at: Timestamp.nullable(),
    delivered_at: Timestamp.nullable(),
  })
  .meta({ id: 'Delivery' })
export type Delivery = z.output<typeof Delivery>

/** One attempt to deliver. */
export const DeliveryAttempt = z
  .object({
    number: z.int(),
    started_at: Timestamp,
    ended_at: Timestamp.nullable(),
    outcome: z.enum(['delivered', 'sent', 'deferred', 'bounced', 'failed', 'interrupted', 'pending']),
    response: z.string().nullable(),
    mx: z.string().nullable(),
    tls: z.string().nullable(),
  })
  .meta({ id: 'DeliveryAttempt' })
export type DeliveryAttempt = z.output<typeof DeliveryAttempt>

const EmailDelivery = z.object({ ...Delivery.shape, history: z.array(DeliveryAttempt).optional() }).meta({ id: 'EmailDelivery' })

/** A whole e-mail. */
export const Email = z
  .object({
    ...EmailRow.shape,
    references: z.array(z.string()),
    reply_to: z.string().nullable(),
    reply_to_verified: z.boolean().nullable().default(null).meta({
      description:
        'whether verified_domain also covers reply_to; false: a forwarder may have added it, and reply goes to from unless specified; null when there is no reply_to, or from is not verified',
    }),
    cc: z.array(Address),
    bcc: z.array(Address),
    recipients: z.object({ to: z.array(Address), cc: z.array(Address), bcc: z.array(Address) }),
    body_text: z.string().nullable(),
    body_html: z.string().nullable(),
    body_truncated: z.boolean().optional(),
    text: z.string(),
    links: z.array(Link),
    attachments: z.array(Attachment),
    authentication: Authentication.nullable(),
    screening: Screening.nullable().default(null).meta({
      description:
        'what is hidden in a received message or instructs its reader; null for others, and for messages of older versions',
    }),
    set_aside: z
      .enum(['blocked_sender', 'unlisted_sender', 'unverified_sender', 'suspicious'])
      .nullable()
      .default(null)
      .meta({ description: 'why a received message was set aside, until it is released' }),
    hold: HoldState.nullable().default(null).meta({
      description: 'of an outbound message held for a person; null for others',
    }),
    parse_error: z.string().nullable(),
    send_at: Timestamp.nullable().meta({ description: 'time at which a scheduled message is sent' }),
    created_by: Maker.default(null).meta({
      description:
        'the key or session that sent or scheduled an outbound message; null for others, and for messages of older versions',
    }),
    deliveries: z.array(EmailDelivery).meta({
      description:
        'one for each recipient of an outbound message; history is included when the e-mail is read alone, for 30 days',
    }),
    duplicate_of: Id('email')
      .nullable()
      .meta({ description: 'the earlier e-mail with the same envelope and content, within 24 h (RFC 1047)' }),
  })
  .meta({ id: 'Email' })
export type Email = z.output<typeof Email>

/** Computes `reply_to_verified` of an e-mail. */
export function replyToVerified({
  reply_to,
  verified_domain,
  authentication,
}: Pick<Email, 'reply_to' | 'verified_domain' | 'authentication'>): boolean | null {
  if (reply_to === null || verified_domain === null || authentication === null) return null
  return isVouchedFor(authentication, 'reply-to')
}

export const AttachmentWithUrl = z
  .object({
    ...Attachment.shape,
    url: z.string().meta({ description: 'usable without a key until it expires' }),
    expires_at: Timestamp,
  })
  .meta({ id: 'AttachmentWithUrl' })
export type AttachmentWithUrl = z.output<typeof AttachmentWithUrl>

export const EmailChange = z
  .strictObject({
    read: z.boolean().optional(),
    unread: z.boolean().optional(),
    labels: z.strictObject({ add: z.array(Label).max(50).default([]), remove: z.array(Label).max(50).default([]) }).optional(),
    send_at: TimestampInput.optional().meta({ description: 'a new time, while it is scheduled' }),
  })
  .meta({ id: 'EmailChange' })
export type EmailChange = z.output<typeof EmailChange>

/** The most e-mails of one bulk change. */
export const maxBulk = 500

/** The answer of a bulk change. */
export const BulkResult = z
  .object({
    changed: z.array(Id('email')).meta({ description: 'the e-mails that are now as asked for, also those that were so before' }),
    not_found: z.array(z.string()).meta({ description: 'the ids that name no e-mail here' }),
    failed: z
      .array(z.object({ id: Id('email'), code: z.string(), message: z.string() }))
      .meta({ description: 'the e-mails that are as they were, with the reason: more labels than an e-mail can have' }),
    has_more: z.boolean().meta({ description: 'whether the search finds more: call again with next_cursor as cursor' }),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'BulkResult' })
export type BulkResult = z.output<typeof BulkResult>

/** A thread, as in lists. */
export const Thread = z
  .object({
    id: Id('thread'),
    identity_id: Id('ident'),
    subject: z.string(),
    participants: z.array(z.string()),
    message_count: z.int(),
    unread_count: z.int(),
    last_message_at: Timestamp,
    snippet: z.string(),
  })
  .meta({ id: 'Thread' })
export type Thread = z.output<typeof Thread>

export const ThreadWithMessages = z
  .object({
    ...Thread.shape,
    messages: z.array(Email).meta({ description: 'oldest first, as many as fit into one response (about 1 MiB)' }),
    has_more: z.boolean().meta({ description: 'whether there are more messages' }),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'ThreadWithMessages' })
export type ThreadWithMessages = z.output<typeof ThreadWithMessages>

const readers: Scope[] = ['messages:read', 'emails:read']

export const emailReleased = eventType('email.released', readers, 'A message that had been set aside was released.', Email)

export const emailReceived = eventType('email.received', readers, 'A message was received for an identity.', Email)
