import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'
import { readLongJson } from '../core/long-json.ts'
import { notFound } from '../core/fault.ts'
import { longWork } from '../core/work/long-work.ts'
import { inflate } from '../store/blobs.ts'
import { raw, type Reader, sql, type Sql } from '../store/database.ts'
import type { Lists, StoredBodies, StoredFields } from '../message/parsed.ts'
import { type Email, type EmailRow, replyToVerified } from './model.ts'

/** The fields of an e-mail that are never searched, stored as JSON; without what is stored with the bodies, and without null and empty lists. */
export interface EmailDetail extends Partial<
  Pick<Email, 'references' | 'bcc' | 'cc' | 'recipients' | 'links' | 'attachments' | 'authentication' | 'screening'>
> {
  mail_from: string
  reply_to?: string
  set_aside?: Email['set_aside']
  hold?: Email['hold']
  parse_error?: string
  require_tls?: true
  send_at?: string
  created_by?: string
}

export interface StoredEmail extends Omit<EmailRow, 'read' | 'spam' | 'automated' | 'labels' | 'has_attachments' | 'codes'> {
  seq: number
  from_address: string
  to_text: string
  read: number
  spam: number
  automated: number
  labels: string
  has_attachments: number
  codes: string
  detail: string
  trace: string
  duplicate_of: string | null
  raw_id: number
  body_id: number
  /** The time the raw message was deleted by retention; null while it is stored. */
  raw_expired_at: string | null
  /** Bytes that an imported message counts in addition to its size. */
  extra_octets: number
  /** For e-mails in the trash only. */
  deleted_at?: string
}

/** A row of `emails` with its compressed bodies. */
export interface StoredEmailWithBody extends StoredEmail {
  /** Bytes of the bodies before deflating; null without any. */
  body_octets: number | null
  deflated: number | null
  /** Null for long bodies, which `wholeEmail` reads. */
  bytes: Uint8Array | null
}

/** Bytes of bodies that are long: they are read one at a time, and in pieces. */
const long = 256 * 1024

const columns = [
  'seq',
  'id',
  'identity_id',
  'thread_id',
  'direction',
  'status',
  'from_address',
  'from_name',
  'to_text',
  'subject',
  'snippet',
  'read',
  'spam',
  'automated',
  'tag',
  'labels',
  'size',
  'has_attachments',
  'verified_domain',
  'message_id',
  'in_reply_to',
  'codes',
  'received_at',
  'sent_at',
  'created_at',
]

/** Every column. */
export const storedColumns: readonly string[] = [
  ...columns,
  'detail',
  'trace',
  'duplicate_of',
  'raw_id',
  'body_id',
  'raw_expired_at',
  'extra_octets',
]

/** The columns of a list. */
export const rowColumns: Sql = raw(columns.map((name) => `emails.${name}`).join(', '))

/** The columns of `StoredEmailWithBody` beside those of the e-mail. */
export const bodyColumns = sql`blobs.size AS body_octets, blobs.deflated, CASE WHEN blobs.size < ${long} THEN blobs.bytes END AS bytes`

/** The columns of `StoredEmailWithBody`, and their tables: those of `emails`, or another under its name. */
export const columnsWithBody = sql`emails.*, ${bodyColumns}`
export function withBody(from: Sql): Sql {
  return sql`${from} LEFT JOIN blobs ON blobs.id = emails.body_id`
}

/** Selects e-mails with their bodies. */
export const selectWithBody = sql`SELECT ${columnsWithBody} FROM ${withBody(sql`emails`)}`

/** Bytes of one delivery in JSON, apart from its texts. */
const deliveryBytes = 250

/** The approximate size of the list entry of an e-mail in JSON, computed without reading the texts. */
export const listedEmailSize = sql`octet_length(from_address) + octet_length(from_name) + octet_length(to_text) + octet_length(emails.subject)
  + octet_length(snippet) + octet_length(labels) + octet_length(codes) + coalesce(octet_length(message_id), 0)
  + coalesce(octet_length(in_reply_to), 0)`

/** The same with its bodies. */
export const bodiedEmailSize = sql`${listedEmailSize} + coalesce((SELECT size FROM blobs WHERE blobs.id = emails.body_id), 0)`

/** The same of a whole e-mail with its deliveries. */
export const wholeEmailSize = sql`${bodiedEmailSize} + octet_length(detail)
  + CASE direction WHEN 'outbound' THEN coalesce((SELECT sum(${deliveryBytes} + octet_length(address) + coalesce(octet_length(response), 0))
    FROM email_recipients WHERE email_id = emails.id), 0) ELSE 0 END`

/** The list entry of a row. */
export function emailRow(row: StoredEmail): EmailRow {
  return {
    id: row.id,
    identity_id: row.identity_id,
    thread_id: row.thread_id,
    direction: row.direction,
    status: row.status,
    from: row.from_address,
    from_name: row.from_name,
    to: row.to_text,
    subject: row.subject,
    snippet: row.snippet,
    read: row.read === 1,
    spam: row.spam === 1,
    automated: row.automated === 1,
    tag: row.tag,
    labels: texts(row.labels),
    size: row.size,
    has_attachments: row.has_attachments === 1,
    verified_domain: row.verified_domain,
    message_id: row.message_id,
    in_reply_to: row.in_reply_to,
    codes: texts(row.codes),
    received_at: row.received_at,
    sent_at: row.sent_at,
    created_at: row.created_at,
    ...(row.deleted_at === undefined ? {} : { deleted_at: row.deleted_at }),
  }
}

/** Parses a JSON list; a shortcut for the empty list, as in most rows. */
function texts(json: string): string[] {
  return json === '[]' ? [] : (JSON.parse(json) as string[])
}

type Bodies = StoredBodies & Partial<StoredFields>

/**
 * The whole e-mail of a row, without the deliveries of an outbound message. Long bodies are read in the account's turn and in pieces, with other
 * work in between; nothing of them is in memory before. Rejects when the signal aborts before. Throws Fault not_found if they were deleted meanwhile.
 */
export async function wholeEmail(
  reader: Reader,
  account: string,
  row: StoredEmailWithBody,
  signal?: AbortSignal,
): Promise<Email> {
  const { body_octets, bytes, deflated, body_id } = row
  if (body_octets === null) return emailOf(row, none)
  if (bytes) return emailOf(row, bodiesIn({ deflated, bytes }))
  const read = async (): Promise<Email> => {
    const stored = await reader.get<{ deflated: number; bytes: Uint8Array }>(
      sql`SELECT deflated, bytes FROM blobs WHERE id = ${body_id}`,
    )
    if (!stored?.bytes.length) throw notFound('e-mail')
    const json = stored.deflated === 1 ? await inflated(stored.bytes, { chunkSize: 1024 * 1024 }) : inflate(false, stored.bytes)
    return emailOf(row, (await readLongJson(json)) as Bodies)
  }
  return longWork('read', account, read, signal)
}

/** The bodies of an e-mail as its events have them, which are shortened when they are long, with their blob. */
export async function eventBodies(reader: Reader, bodyId: number): Promise<{ id: number; shortened: boolean; bodies: Bodies }> {
  const row = await reader.get<{ id: number; deflated: number; bytes: Uint8Array }>(
    sql`SELECT id, deflated, bytes FROM blobs WHERE id = coalesce((SELECT id FROM blobs WHERE part_of = ${bodyId}), ${bodyId})`,
  )
  return row
    ? { id: row.id, shortened: row.id !== bodyId, bodies: bodiesIn(row) }
    : { id: bodyId, shortened: false, bodies: none }
}

/** The lists of a stored e-mail, without reading its long bodies. */
export async function storedLists(reader: Reader, row: Pick<StoredEmail, 'detail' | 'body_id'>): Promise<Lists> {
  const detail = JSON.parse(row.detail) as EmailDetail
  return { ...absent, ...detail, ...(await fieldsWithBodies(reader, detail, row.body_id)) }
}

/**
 * A stored e-mail without its bodies, which are not read if they are long, and without the deliveries of an outbound message. Throws Fault not_found
 * if it was deleted meanwhile.
 */
export async function emailWithoutBodies(reader: Reader, row: StoredEmail): Promise<Email> {
  return emailOf(row, { ...(await fieldsWithBodies(reader, JSON.parse(row.detail) as EmailDetail, row.body_id)), ...none })
}

/** What is stored with the bodies of an e-mail rather than in its row: all in one place, also with the shortened bodies of a message to many. */
async function fieldsWithBodies(reader: Reader, detail: EmailDetail, bodyId: number): Promise<Partial<StoredFields>> {
  if (detail.attachments) return {}
  const { bodies } = await eventBodies(reader, bodyId)
  if (!bodies.attachments) throw notFound('e-mail')
  return bodies
}

function bodiesIn({ deflated, bytes }: { deflated: number | null; bytes: Uint8Array }): Bodies {
  return JSON.parse(inflate(deflated === 1, bytes).toString('utf8')) as Bodies
}

const inflated = promisify(inflateRaw)

const none: StoredBodies = { body_text: null, body_html: null, text: '' }

/** What a row need not say. */
const absent = {
  references: [],
  bcc: [],
  cc: [],
  recipients: { to: [], cc: [], bcc: [] },
  links: [],
  attachments: [],
  reply_to: null,
  authentication: null,
  screening: null,
  set_aside: null,
  hold: null,
  parse_error: null,
  send_at: null,
  created_by: null,
} satisfies Partial<Email>

/** The e-mail of a row with what is stored with its bodies, without the deliveries of an outbound message. */
function emailOf(row: StoredEmail, bodies: Bodies): Email {
  const { mail_from: _, require_tls: _tls, ...detail } = JSON.parse(row.detail) as EmailDetail
  const email = { ...absent, ...emailRow(row), ...bodies, ...detail }
  return { ...email, reply_to_verified: replyToVerified(email), deliveries: [], duplicate_of: row.duplicate_of }
}
