import { day, iso } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import type { IdentityRow } from '../identities/identities.ts'
import { sql, type Transaction } from '../store/database.ts'
import type { EmailDetail } from './email-rows.ts'
import type { StoredBodies } from '../message/parsed.ts'
import type { ExaminedMessage } from './types.ts'
import { type Email, replyToVerified } from './model.ts'
import { indexable, ownerToken } from './search.ts'
import { othersAmong, type ThreadInput } from './threads.ts'

/** Characters of a message that are indexed for search. */
const maxSearchable = 256 * 1024

/** Bytes of a body, as UTF-8, in an event; the e-mail itself has the whole body. */
const maxEventBody = 256 * 1024

/** The number of newest messages with one Message-ID that are compared, as senders can choose it freely. */
const maxCandidates = 200

/** One recipient's copy. */
export interface RecipientCopy extends ExaminedMessage {
  rawId: number
  bodyId: number
  owner: IdentityRow
  recipient: string
}

/**
 * The e-mail of the same envelope and content within the last 24 hours, or at any time for internal mail, whose envelope belongs to one message
 * and recipient only. Never for mail without a Message-ID.
 */
export async function duplicateOf(
  tx: Transaction,
  copy: RecipientCopy,
  now: number,
): Promise<{ id: string; thread_id: string } | undefined> {
  const { owner, examined, rawId, recipient, envelope } = copy
  if (examined.parsed.message_id === null) return undefined
  const rows = await tx.all<{ id: string; thread_id: string; to_text: string; detail: string }>(
    sql`SELECT near.id, near.thread_id, near.to_text, near.detail FROM (
        SELECT id, thread_id, to_text, detail, raw_id, duplicate_of, received_at FROM emails
        WHERE identity_id = ${owner.id} AND message_id = ${examined.parsed.message_id} ORDER BY seq DESC LIMIT ${maxCandidates}
      ) AS near JOIN blobs ON blobs.id = near.raw_id WHERE near.raw_id <> ${rawId} AND blobs.sha256 = ${Buffer.from(examined.sha256, 'hex')}
      AND near.duplicate_of IS NULL AND near.received_at > ${envelope.own ? '' : iso(now - day)} LIMIT 20`,
  )
  return rows.find((row) => row.to_text === recipient && (JSON.parse(row.detail) as EmailDetail).mail_from === envelope.mail_from)
}

/** The fields of a copy that determine its thread. */
export function threadInputOf(copy: RecipientCopy): ThreadInput {
  const {
    envelope,
    examined: { parsed },
    owner,
  } = copy
  const from = parsed.from?.address ?? envelope.mail_from
  const addresses = [from, ...[...parsed.to, ...parsed.cc].map((one) => one.address)]
  const others = othersAmong(addresses, owner.email, copy.recipient)
  const { subject, references, in_reply_to } = parsed
  return { identity_id: owner.id, subject, references, in_reply_to, others, own: owner.email }
}

/** The e-mail of a copy. */
export function emailOf(
  copy: RecipientCopy,
  place: { to: string; tag: string | null; at: string; thread_id: string; duplicate_of: string | null },
): Email {
  const { envelope, raw, examined, spam, owner } = copy
  const { parsed, verdict } = examined
  const { at, ...where } = place
  const from = parsed.from ?? { address: envelope.mail_from, name: '' }
  return {
    id: newId('email'),
    identity_id: owner.id,
    ...where,
    direction: 'inbound',
    status: 'received',
    from: from.address,
    from_name: from.name,
    subject: parsed.subject,
    snippet: parsed.snippet,
    read: false,
    spam,
    // no replies to the null sender (RFC 3834 2)
    automated: parsed.automated || envelope.mail_from === '',
    labels: [],
    size: raw.length,
    has_attachments: parsed.attachments.length > 0,
    verified_domain: verdict.verified_domain,
    message_id: parsed.message_id,
    in_reply_to: parsed.in_reply_to,
    codes: parsed.codes,
    received_at: at,
    sent_at: null,
    created_at: at,
    references: parsed.references,
    reply_to: parsed.reply_to,
    reply_to_verified: replyToVerified({ ...verdict, reply_to: parsed.reply_to }),
    cc: parsed.cc,
    bcc: [],
    recipients: { to: parsed.to, cc: parsed.cc, bcc: [] },
    links: parsed.links,
    attachments: parsed.attachments,
    authentication: verdict.authentication,
    parse_error: parsed.parse_error,
    send_at: null,
    created_by: null,
    deliveries: [],
    ...truncateBodies(parsed),
  }
}

/** Inserts the row of an e-mail and returns its sequence number. */
export async function insertEmail(
  tx: Transaction,
  email: Email,
  {
    rawId,
    bodyId,
    trace,
    mail_from,
    extra_octets = 0,
  }: { rawId: number; bodyId: number; trace: string; mail_from: string; extra_octets?: number },
): Promise<number> {
  const { references, reply_to, cc, bcc, recipients, links, attachments, authentication, parse_error, send_at, created_by } =
    email
  const detail: EmailDetail = {
    references,
    reply_to,
    cc,
    bcc,
    recipients,
    links,
    attachments,
    authentication,
    parse_error,
    ...(send_at === null ? {} : { send_at }),
    ...(created_by === null ? {} : { created_by }),
    mail_from,
  }
  const row = await tx.get<{ seq: number }>(
    sql`INSERT INTO emails (id, identity_id, thread_id, direction, status, from_address, from_name, to_text, subject, snippet, read, spam,
      automated, tag, labels, size, has_attachments, verified_domain, message_id, in_reply_to, codes, received_at, sent_at, created_at, detail, trace,
      duplicate_of, raw_id, body_id, extra_octets) VALUES (${email.id}, ${email.identity_id}, ${email.thread_id}, ${email.direction}, ${email.status},
      ${email.from}, ${email.from_name}, ${email.to}, ${email.subject}, ${email.snippet}, ${email.read ? 1 : 0}, ${email.spam ? 1 : 0},
      ${email.automated ? 1 : 0}, ${email.tag}, ${JSON.stringify(email.labels)}, ${email.size}, ${email.has_attachments ? 1 : 0}, ${email.verified_domain},
      ${email.message_id}, ${email.in_reply_to}, ${JSON.stringify(email.codes)}, ${email.received_at}, ${email.sent_at}, ${email.created_at},
      ${JSON.stringify(detail)}, ${trace}, ${email.duplicate_of}, ${rawId}, ${bodyId}, ${extra_octets}) RETURNING seq`,
  )
  return row!.seq
}

/** Adds an e-mail to the search index. */
export async function insertSearchable(
  tx: Transaction,
  seq: number,
  email: Email,
  { body_text, text }: StoredBodies,
): Promise<void> {
  const body = (body_text ?? text).slice(0, maxSearchable)
  await tx.run(
    sql`INSERT INTO emails_search (rowid, owner, sender, subject, body) VALUES (${seq}, ${ownerToken(email.identity_id)},
      ${indexable(`${email.from_name} ${email.from}`)}, ${indexable(email.subject)}, ${indexable(body)})`,
  )
}

/** The bodies as in an event, truncated if necessary. */
export function truncateBodies(parsed: StoredBodies): StoredBodies & { body_truncated?: true } {
  const { body_text, body_html, text } = parsed
  const long = [body_text, body_html, text].some((body) => body !== null && Buffer.byteLength(body) > maxEventBody)
  if (!long) return { body_text, body_html, text }
  return {
    body_text: body_text && truncated(body_text),
    body_html: body_html && truncated(body_html),
    text: truncated(text),
    body_truncated: true,
  }
}

/** Truncates a body to the limit, at a character boundary. */
function truncated(body: string): string {
  const bytes = Buffer.from(body)
  if (bytes.length <= maxEventBody) return body
  let end = maxEventBody
  // continuation bytes of UTF-8 are 10xxxxxx
  while ((bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}
