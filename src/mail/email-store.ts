import type { Plan } from '../accounts/plan.ts'
import { day, iso } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import { upToJsonBytes } from '../core/text.ts'
import type { EventLog, NewEvent } from '../events/log.ts'
import { type EventType, uncountedMessageBytes } from '../events/model.ts'
import type { IdentityRow } from '../identities/identities.ts'
import type { RawMessages } from '../objects/raw-messages.ts'
import { insertWhole } from '../store/blobs.ts'
import { sql, type Transaction } from '../store/database.ts'
import { type EmailDetail, eventBodies } from './email-rows.ts'
import { listsOf, type Parsed, type StoredBodies, type StoredFields, storedFieldsOf } from '../message/parsed.ts'
import type { Examination, ExaminedMessage } from './types.ts'
import { type Email, replyToVerified } from './model.ts'
import { insertWords } from './search/full-text.ts'
import { addToThread, othersAmong, threadById, type ThreadInput, threadOf } from './threads.ts'

/** Characters of a message that are indexed for search, of each copy and of all copies together. */
const maxSearchable = 256 * 1024
const maxSearchableOfCopies = 1024 * 1024

/** Bytes of a body in the JSON of an event; the e-mail itself has the whole body. */
const maxEventBody = 256 * 1024

/** The number of newest messages with one Message-ID that are compared, as senders can choose it freely. */
const maxCandidates = 200

/** The content of a message that is stored, with all that its copies share. */
export interface StoredContent {
  raw_id: number
  body_id: number
  /** The number of e-mails that share it. */
  copies: number
  /** The same for all copies, computed with the first: the detail in JSON, and the bodies of the event. */
  detail?: string
  event?: EventContent
  /** What is stored with the bodies besides, which its rows do not repeat and the events of its arrival have from there. */
  fields: Partial<StoredFields>
}

/** The long fields of an event, and the blob that has them; none when truncated bodies are in the event itself. */
interface EventContent {
  bodies: StoredBodies & { body_truncated?: true }
  blob: NewEvent<Email>['blob']
}

const bodyFields = ['body_text', 'body_html', 'text'] as const

/** An e-mail to be stored. */
interface NewStoredEmail {
  owner: IdentityRow
  /** The e-mail as it will be, but for `thread_id` and `duplicate_of`. */
  email: Email
  parsed: Parsed
  content: StoredContent
  /** The owner's address at which it arrived, or from which it is sent. */
  address: string
  participants: string[]
  mail_from: string
  /** The header fields that are prepended to the raw message, lines with CRLF. */
  trace: string
  /** The e-mail that it duplicates. A duplicate is stored and marked, without a thread of its own or a search entry. */
  original?: DuplicatedEmail | undefined
  /** Its thread, if given explicitly. */
  thread_id?: string | null | undefined
  /** Bytes that it counts in addition to its size. */
  extra_octets?: number
}

interface DuplicatedEmail {
  id: string
  thread_id: string
}

/** Stores e-mails, received, sent or imported: their content, rows, threads and search entries, the bytes they count, and their events. */
export class EmailStore {
  readonly #plan: Plan
  readonly #events: EventLog
  readonly #raw: RawMessages

  constructor({ plan, events, raw }: { plan: Plan; events: EventLog; raw: RawMessages }) {
    this.#raw = raw
    this.#plan = plan
    this.#events = events
  }

  /**
   * Prepares a message for being stored, before the transaction: a large one is written to the store of objects. One that was not prepared is stored in
   * the database. Throws Fault `storage_unavailable`.
   */
  async prepare(raw: Buffer, examined: Examination): Promise<Examination> {
    const { deflated } = examined
    const object = await this.#raw.upload({ size: raw.length, deflated: deflated !== null, bytes: deflated ?? raw })
    return object === undefined ? examined : { ...examined, object }
  }

  /**
   * Stores the raw message and its bodies, before its e-mails, of which there are `copies`. `shared`: what its events have in common is stored once,
   * as there will be several.
   */
  async insertContent(
    tx: Transaction,
    raw: Buffer,
    examined: Examination,
    { copies = 1, shared = copies > 1 }: { copies?: number; shared?: boolean } = {},
  ): Promise<StoredContent> {
    const { sha256, deflated, body_size, bodies } = examined
    const packed = {
      size: raw.length,
      sha256: Buffer.from(sha256, 'hex'),
      deflated: deflated !== null,
      bytes: deflated ?? raw,
    }
    const [raw_id, body_id] = await Promise.all([
      this.#raw.insert(tx, packed, examined.object),
      insertWhole(tx, { size: body_size, sha256: null, deflated: true, bytes: bodies }),
    ])
    const content: StoredContent = { raw_id, body_id, copies, fields: fieldsOf(examined, copies) }
    return shared ? { ...content, event: await insertSharedEvent(tx, body_id, examined.parsed, content.fields) } : content
  }

  /** What the further events of a stored message have in common. */
  async sharedEvent(tx: Transaction, body_id: number): Promise<EventContent> {
    const { id, shortened, bodies } = await eventBodies(tx, body_id)
    if (shortened) return { bodies: { ...bodies, body_truncated: true }, blob: { id, fields: bodyFields } }
    // of one copy, or of an older version, which stored no shortened bodies
    const { body_text: _text, body_html: _html, text: _new, ...fields } = bodies
    return insertSharedEvent(tx, body_id, bodies, fields)
  }

  /** Stores an e-mail; the caller has checked the quota. Returns it with its thread. */
  async insert(tx: Transaction, message: NewStoredEmail): Promise<Email> {
    const { owner, parsed, original, extra_octets = 0 } = message
    const { size, received_at, snippet, read } = message.email
    const input = threadInputOf(message)
    const thread = original
      ? undefined
      : ((await threadById(tx, message.thread_id ?? null, owner.id)) ?? (await threadOf(tx, input, Date.parse(received_at))))
    const email = { ...message.email, thread_id: (original?.thread_id ?? thread?.id)!, duplicate_of: original?.id ?? null }
    const seq = await insertRow(tx, email, message)
    const { participants } = message
    const counted = size + extra_octets
    // sent together, where the server is another process
    await Promise.all([
      tx.run(sql`UPDATE identities SET stored_bytes = stored_bytes + ${counted} WHERE id = ${owner.id}`),
      this.#plan.add(tx, owner.account_id, 'storage_bytes', counted),
      thread && insertSearchable(tx, seq, email, parsed, message.content.copies),
      thread && addToThread(tx, thread, { ...input, seq, at: received_at, snippet, participants, unread: !read }),
    ])
    return email
  }

  /** Appends an event of an e-mail, with further fields. `uncounted` is the number of bytes of it that do not count against the quota. */
  async appendEvent<Data extends Email>(
    tx: Transaction,
    type: EventType<Data>,
    {
      account_id,
      content,
      email,
      annotation = null,
      uncounted = uncountedMessageBytes,
    }: {
      account_id: string
      content: Pick<StoredContent, 'body_id' | 'event'> & Partial<Pick<StoredContent, 'fields'>>
      email: Email
      annotation?: string | null
      uncounted?: number
    },
    more: Omit<Data, keyof Email>,
  ): Promise<void> {
    const { bodies, blob } = content.event ?? eventContentOf(content.body_id, email, content.fields)
    await this.#events.append(tx, type, {
      account_id,
      identity_id: email.identity_id,
      data: { ...email, ...bodies, ...more } as Data,
      annotation,
      uncounted,
      ...(blob ? { blob } : {}),
    })
  }
}

/** One recipient's copy of a received message. */
interface RecipientCopy extends ExaminedMessage, StoredContent {
  owner: IdentityRow
  recipient: string
}

/**
 * The e-mail of the same envelope and content within the last 24 hours, or at any time for internal mail, whose envelope belongs to one message
 * and recipient only. Never for mail without a Message-ID.
 */
export async function duplicateOf(tx: Transaction, copy: RecipientCopy, now: number): Promise<DuplicatedEmail | undefined> {
  const { owner, examined, raw_id, recipient, envelope } = copy
  if (examined.parsed.message_id === null) return undefined
  // details may be long: only those of the same content are read
  const rows = await tx.all<DuplicatedEmail & { mail_from: string }>(
    sql`SELECT id, thread_id, json_extract(detail, '$.mail_from') AS mail_from FROM emails WHERE seq IN (
        SELECT near.seq FROM (
          SELECT seq, to_text, raw_id, duplicate_of, received_at FROM emails
          WHERE identity_id = ${owner.id} AND message_id = ${examined.parsed.message_id} ORDER BY seq DESC LIMIT ${maxCandidates}
        ) AS near JOIN blobs ON blobs.id = near.raw_id WHERE near.to_text = ${recipient} AND near.raw_id <> ${raw_id}
        AND blobs.sha256 = ${Buffer.from(examined.sha256, 'hex')} AND near.duplicate_of IS NULL
        AND near.received_at > ${envelope.own ? '' : iso(now - day)} LIMIT 20)`,
  )
  return rows.find(({ mail_from }) => mail_from === envelope.mail_from)
}

/** The fields of an e-mail that determine its thread. */
function threadInputOf({ owner, email, parsed, address }: NewStoredEmail): ThreadInput {
  const { to, cc, subject, references, in_reply_to } = parsed
  const others = othersAmong([email.from, ...[...to, ...cc].map((one) => one.address)], owner.email, address)
  return { identity_id: owner.id, subject, references, in_reply_to, others, own: owner.email }
}

/** The e-mail of a message that arrived, which gets its thread when it is stored. */
export function receivedEmail(
  { envelope, raw, examined, spam, owner }: ExaminedMessage & { owner: IdentityRow },
  { to, tag, at }: { to: string; tag: string | null; at: string },
): Email {
  const { parsed, verdict } = examined
  const from = parsed.from ?? { address: envelope.mail_from, name: '' }
  return {
    id: newId('email'),
    identity_id: owner.id,
    to,
    tag,
    thread_id: '',
    duplicate_of: null,
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
    screening: parsed.screening,
    set_aside: null,
    hold: null,
    parse_error: parsed.parse_error,
    send_at: null,
    created_by: null,
    deliveries: [],
    body_text: parsed.body_text,
    body_html: parsed.body_html,
    text: parsed.text,
  }
}

/** Inserts the row of an e-mail and returns its sequence number. */
async function insertRow(
  tx: Transaction,
  email: Email,
  { content, trace, mail_from, extra_octets = 0 }: NewStoredEmail,
): Promise<number> {
  // that of a message that was set aside for one is not that of its other copies
  const own = email.set_aside === null ? undefined : JSON.stringify(detailOf(email, mail_from, content.fields))
  const detail = own ?? (content.detail ??= JSON.stringify(detailOf(email, mail_from, content.fields)))
  const row = await tx.get<{ seq: number }>(
    sql`INSERT INTO emails (id, identity_id, thread_id, direction, status, from_address, from_name, to_text, subject, snippet, read, spam,
      automated, tag, labels, size, has_attachments, verified_domain, message_id, in_reply_to, codes, received_at, sent_at, created_at, detail, trace,
      duplicate_of, raw_id, body_id, extra_octets) VALUES (${email.id}, ${email.identity_id}, ${email.thread_id}, ${email.direction}, ${email.status},
      ${email.from}, ${email.from_name}, ${email.to}, ${email.subject}, ${email.snippet}, ${email.read ? 1 : 0}, ${email.spam ? 1 : 0},
      ${email.automated ? 1 : 0}, ${email.tag}, ${JSON.stringify(email.labels)}, ${email.size}, ${email.has_attachments ? 1 : 0}, ${email.verified_domain},
      ${email.message_id}, ${email.in_reply_to}, ${JSON.stringify(email.codes)}, ${email.received_at}, ${email.sent_at}, ${email.created_at},
      ${detail}, ${trace}, ${email.duplicate_of}, ${content.raw_id}, ${content.body_id}, ${extra_octets}) RETURNING seq`,
  )
  return row!.seq
}

/** The detail of an e-mail, without the fields that are stored with the bodies but for the references, which are looked up. */
function detailOf(email: Email, mail_from: string, stored: Partial<StoredFields>): EmailDetail {
  const { references, reply_to, cc, bcc, recipients, links, attachments } = email
  const { authentication, screening, set_aside, hold, parse_error, send_at, created_by } = email
  return {
    ...(references.length === 0 ? {} : { references }),
    ...(reply_to === null ? {} : { reply_to }),
    ...(bcc.length === 0 ? {} : { bcc }),
    ...(stored.attachments ? {} : { cc, recipients, links, attachments }),
    ...(stored.authentication || authentication === null ? {} : { authentication }),
    ...(stored.screening || screening === null ? {} : { screening }),
    ...(set_aside === null ? {} : { set_aside }),
    ...(hold === null ? {} : { hold }),
    ...(parse_error === null ? {} : { parse_error }),
    ...(send_at === null ? {} : { send_at }),
    ...(created_by === null ? {} : { created_by }),
    mail_from,
  }
}

/** Adds an e-mail to the search index, one of so many copies. */
export async function insertSearchable(
  tx: Transaction,
  seq: number,
  email: Email,
  bodies: Pick<StoredBodies, 'body_text' | 'text'>,
  copies = 1,
): Promise<void> {
  const body = searchableBody(bodies, copies)
  const { identity_id, from_name, from, subject } = email
  await insertWords(tx, seq, { identity_id, sender: `${from_name} ${from}`, subject, body })
}

/** The part of a body that is indexed, of one of so many copies. */
export function searchableBody({ body_text, text }: Pick<StoredBodies, 'body_text' | 'text'>, copies: number): string {
  return (body_text ?? text).slice(0, Math.min(maxSearchable, Math.floor(maxSearchableOfCopies / copies)))
}

/** Stores what the events of a message have in common, if it differs from what is stored of the message. */
async function insertSharedEvent(
  tx: Transaction,
  body_id: number,
  whole: StoredBodies,
  fields: Partial<StoredFields> = {},
): Promise<EventContent> {
  const found = eventContentOf(body_id, whole, fields)
  const { bodies } = found
  if (!bodies.body_truncated) return found
  const { body_text, body_html, text } = bodies
  const bytes = Buffer.from(JSON.stringify({ body_text, body_html, text, ...fields }))
  const id = await insertWhole(tx, { size: bytes.length, sha256: null, deflated: false, bytes, part_of: body_id })
  return { bodies, blob: { id, fields: namesOf(fields) } }
}

/** The bodies as in an event, and the blob of the bodies unless they are truncated; `fields` are stored with them. */
function eventContentOf(body_id: number, email: StoredBodies, fields: Partial<StoredFields> = {}): EventContent {
  const bodies = truncateBodies(email)
  return { bodies, blob: bodies.body_truncated ? undefined : { id: body_id, fields: namesOf(fields) } }
}

/** The names of the fields that a blob has, the bodies among them. */
function namesOf(fields: Partial<StoredFields>): (keyof Email)[] {
  return [...bodyFields, ...(Object.keys(fields) as (keyof StoredFields)[])]
}

/** What is stored with the bodies of a message. */
function fieldsOf({ parsed, verdict, all_fields, long_lists }: Examination, copies: number): Partial<StoredFields> {
  if (all_fields) return storedFieldsOf(parsed, verdict)
  return copies > 1 && long_lists ? listsOf(parsed) : {}
}

/** The bodies as in an event, truncated if necessary. */
function truncateBodies(parsed: StoredBodies): EventContent['bodies'] {
  const { body_text, body_html, text } = parsed
  const bodies = {
    body_text: body_text && upToJsonBytes(body_text, maxEventBody),
    body_html: body_html && upToJsonBytes(body_html, maxEventBody),
    text: upToJsonBytes(text, maxEventBody),
  }
  const isWhole = bodyFields.every((name) => bodies[name]?.length === parsed[name]?.length)
  return isWhole ? bodies : { ...bodies, body_truncated: true }
}
