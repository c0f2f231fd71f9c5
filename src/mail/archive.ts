import { release } from '../core/memory.ts'
import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { Turns } from '../core/work/paced-work.ts'
import type { Caller } from '../core/scopes.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import type { RawMessages } from '../objects/raw-messages.ts'
import { sql, type Sql, type Transaction } from '../store/database.ts'
import { type EmailStore, receivedEmail } from './email-store.ts'
import { deliveriesOf } from './deliveries.ts'
import { type EmailDetail, emailWithoutBodies, type StoredEmail } from './email-rows.ts'
import type { Examiner } from './workers/examiner.ts'
import type { Examination } from './types.ts'
import { Address, Delivery, type Email, EmailStatus, type Envelope, Label } from './model.ts'
import type { Quota } from './quota.ts'
import { uncheckedVerdict } from '../mailauth/unchecked.ts'
import * as z from 'zod'
import { TimestampInput } from '../core/shapes.ts'
import { withoutControls } from '../core/text.ts'
import { firstValue, type HeaderField, headersOf } from '../message/headers.ts'
import { participantsOf } from './threads.ts'

/** The record of a message in an archive, without its raw content and bodies. */
export type ArchivedEmail = Omit<Email, 'body_text' | 'body_html' | 'text' | 'body_truncated'> & { mail_from: string }

/** A message of an archive that was parsed and not yet stored. */
export interface Restorable {
  raw: Buffer
  examined: Examination
  state: EmailState
  hints: ImportHints
}

/** The result of an import: stored, already present, or above a quota. */
export type RestoreResult = 'kept' | 'duplicate' | 'full'

interface Deps extends Pick<Basis, 'database' | 'clock'> {
  identities: Identities
  examiner: Examiner
  store: EmailStore
  raw: RawMessages
  quota: Quota
  hostname: string
}

/** Export and import of all messages of an identity. */
export class MailArchive {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async count(identityId: string): Promise<number> {
    const row = await this.#deps.database.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM emails WHERE identity_id = ${identityId}`,
    )
    return row!.n
  }

  /** The messages after a sequence number, in order of arrival, including spam and duplicates; undefined for one that was deleted meanwhile. */
  async after(
    seq: number,
    identityId: string,
    limit: number,
  ): Promise<{ row: StoredEmail; archived: ArchivedEmail | undefined }[]> {
    const rows = await this.#deps.database.all<StoredEmail>(
      sql`SELECT * FROM emails WHERE identity_id = ${identityId} AND seq > ${seq} ORDER BY seq LIMIT ${limit}`,
    )
    const sent = rows.filter(({ direction }) => direction === 'outbound').map(({ id }) => id)
    const deliveries = await deliveriesOf(this.#deps.database, sent)
    const turns = new Turns()
    const found = []
    for (const row of rows) {
      if (turns.due) await turns.yield()
      const email = await emailWithoutBodies(this.#deps.database, row).catch(unlessGone)
      found.push({ row, archived: email && archivedOf(row, email, deliveries.get(row.id) ?? []) })
    }
    return found
  }

  /** The raw message as received, or as sent with date and signatures prepended. Undefined when retention has removed it. */
  async rawMessage({ raw_id, direction, trace }: StoredEmail): Promise<Buffer | undefined> {
    const raw = await this.#deps.raw.read(raw_id)
    if (!raw || direction !== 'outbound') return raw
    const whole = Buffer.concat([Buffer.from(trace), raw])
    release(raw)
    return whole
  }

  /** Parses a message like a received one, but without authentication checks, which are meaningless for an import. */
  async read(raw: Buffer, state: unknown, accountId: string): Promise<Restorable & { understood: boolean }> {
    const parsed = EmailState.safeParse(state ?? {})
    const envelope = envelopeOf('')
    const examined = await this.#deps.examiner.examine(raw, envelope, accountId)
    const verdict = uncheckedVerdict(envelope, this.#deps.hostname, 'imported', 'none')
    return {
      raw,
      examined: { ...examined, verdict },
      state: parsed.data ?? {},
      hints: await importHintsIn(raw),
      understood: parsed.success,
    }
  }

  /** Prepares a message for `insert`, before the transaction, unless it is already present. Throws Fault `storage_unavailable`. */
  async prepare<Message extends Restorable>(identityId: string, message: Message): Promise<Message> {
    const { database, raw, store } = this.#deps
    if (!raw.isObject(message.raw.length)) return message
    if (await database.get(duplicateCandidates(identityId, message))) return message
    return { ...message, examined: await store.prepare(message.raw, message.examined) }
  }

  /** Stores it unless it is already present (same Message-ID and content). It is searchable and counted like others, but raises no event. */
  async insert(tx: Transaction, caller: Caller, identityId: string, message: Restorable): Promise<RestoreResult> {
    const owner = await this.#deps.identities.row(caller, identityId, tx)
    const { raw, examined, state } = message
    const at = this.#timeOf(message)
    const same = await this.#findDuplicate(tx, owner, message, at)
    if (same.known) return 'duplicate'
    const extra = extraOf(raw, state)
    const { limit, available } = await this.#deps.quota.limitsOf(owner, tx)
    if (raw.length + extra > Math.min(limit - owner.stored_bytes, available)) return 'full'
    const email = this.#emailOf(message, owner, iso(at))
    await this.#deps.store.insert(tx, {
      owner,
      email,
      parsed: examined.parsed,
      content: await this.#deps.store.insertContent(tx, raw, examined),
      address: owner.email,
      participants: participantsOf(email.from, email.to),
      mail_from: senderOf(message),
      trace: '',
      original: state.duplicate_of ? same.original : undefined,
      extra_octets: extra,
    })
    if (email.direction === 'outbound') await insertDeliveries(tx, email)
    return 'kept'
  }

  /** The time of arrival: from the archive, else from the header; never in the future. */
  #timeOf({ state, hints }: Restorable): number {
    const now = this.#deps.clock.now()
    const known = [state.received_at, hints.received, state.arrived_at, hints.written].find((time) => time !== undefined) ?? now
    const time = typeof known === 'string' ? Date.parse(known) : known
    return Math.min(Math.max(time, 0), now)
  }

  async #findDuplicate(
    tx: Transaction,
    owner: IdentityRow,
    message: Restorable,
    at: number,
  ): Promise<{ known: boolean; original: { id: string; thread_id: string } | undefined }> {
    const { state } = message
    const rows = await tx.all<DuplicateCandidate>(duplicateCandidates(owner.id, message))
    // an archive of this program identifies one of several copies
    const exact = state.received_at !== undefined && state.to !== undefined
    const known = rows.some((row) => !exact || (row.to_text === state.to && row.received_at === iso(at)))
    return { known, original: rows.find((row) => row.duplicate_of === null) }
  }

  #emailOf(message: Restorable, owner: IdentityRow, at: string): Email {
    const { raw, examined, state, hints } = message
    const { parsed } = examined
    const envelope = envelopeOf(senderOf(message))
    const email: Email = {
      ...receivedEmail(
        { envelope, raw, examined, spam: state.spam ?? false, owner },
        { to: state.to ?? owner.email, tag: state.tag ?? null, at },
      ),
      // without a state a message counts as read, as archived messages are not new
      read: state.read ?? hints.read ?? true,
      labels: [...new Set([...(state.labels ?? []), ...hints.labels])].slice(0, 100),
      created_at: iso(this.#deps.clock.now()),
    }
    if (state.direction !== 'outbound') return email
    const bcc = state.bcc ?? []
    return {
      ...email,
      direction: 'outbound',
      status: finalStatus(state.status),
      automated: parsed.automated,
      read: true,
      spam: false,
      codes: [],
      authentication: null,
      screening: null,
      to: state.to ?? parsed.to.map(({ address }) => address).join(', '),
      bcc,
      recipients: { ...email.recipients, bcc },
      sent_at: state.sent_at ?? null,
      send_at: state.send_at ?? null,
      deliveries: state.deliveries ?? [],
    }
  }
}

/** The minimum number of bytes that a message counts: for its row, its search entry and its thread. */
const minBytes = 1024

/** Bytes that a message counts in addition to its size: its state from the archive, and the difference to the minimum. */
function extraOf(raw: Buffer, { to, tag, labels, mail_from, bcc, deliveries }: EmailState): number {
  const kept = JSON.stringify({ to, tag, labels, mail_from, bcc, deliveries })
  return (kept === '{}' ? 0 : Buffer.byteLength(kept)) + Math.max(0, minBytes - raw.length)
}

type DuplicateCandidate = Pick<StoredEmail, 'id' | 'thread_id' | 'to_text' | 'received_at' | 'duplicate_of'>

/** Messages with one Message-ID, or of one size without any, that are compared. */
const maxCandidates = 500

/**
 * Selects the messages that an archived one may duplicate, oldest first: with the same Message-ID and content. The number is limited, as an
 * archive could be crafted with many; beyond it a message may be stored twice.
 */
export function duplicateCandidates(identityId: string, { raw, examined, state }: Restorable): Sql {
  const { message_id } = examined.parsed
  const named = message_id === null ? sql`message_id IS NULL AND size = ${raw.length}` : sql`message_id = ${message_id}`
  // sent messages are stored without the date and signatures that were added when sent
  const sent = state.direction === 'outbound' && message_id !== null ? sql` OR direction = 'outbound'` : sql``
  return sql`SELECT near.id, near.thread_id, near.to_text, near.received_at, near.duplicate_of FROM (
      SELECT id, seq, thread_id, to_text, received_at, duplicate_of, direction, raw_id FROM emails
      WHERE identity_id = ${identityId} AND ${named} ORDER BY seq LIMIT ${maxCandidates}
    ) AS near JOIN blobs ON blobs.id = near.raw_id WHERE (blobs.sha256 = ${Buffer.from(examined.sha256, 'hex')}${sent}) ORDER BY near.seq`
}

/** Messages that were not sent yet when the archive was created are not sent. */
function finalStatus(status: Email['status'] | undefined): Email['status'] {
  if (status === undefined) return 'sent'
  return (['sent', 'delivered', 'bounced', 'failed'] as Email['status'][]).includes(status) ? status : 'cancelled'
}

async function insertDeliveries(tx: Transaction, email: Email): Promise<void> {
  const [cc, bcc] = [email.cc, email.bcc].map((list) => new Set(list.map(({ address }) => address))) as [Set<string>, Set<string>]
  for (const [position, one] of email.deliveries.entries()) {
    const field = bcc.has(one.recipient) ? 'bcc' : cc.has(one.recipient) ? 'cc' : 'to'
    await tx.run(
      sql`INSERT INTO email_recipients (email_id, position, field, address, status, smtp_code, enhanced_code, response, mx, tls, attempts, delivered_at)
        VALUES (${email.id}, ${position}, ${field}, ${one.recipient}, ${finalStatus(one.status)}, ${one.smtp_code}, ${one.enhanced_code},
        ${one.response}, ${one.mx}, ${one.tls}, ${one.attempts}, ${one.delivered_at})`,
    )
  }
}

function unlessGone(error: unknown): undefined {
  if (!(error instanceof Fault) || error.type !== 'not_found') throw error
}

function archivedOf({ detail }: StoredEmail, email: Email, deliveries: Delivery[]): ArchivedEmail {
  const { body_text: _text, body_html: _html, text: _new, ...shown } = email
  return { ...shown, deliveries, mail_from: (JSON.parse(detail) as EmailDetail).mail_from }
}

/** The envelope sender of an imported message, as far as it is known. */
function senderOf({ state, hints, examined }: Restorable): string {
  return state.mail_from ?? hints.sender ?? examined.parsed.from?.address ?? ''
}

/** The envelope of an imported message: only a sender. */
function envelopeOf(sender: string): Envelope {
  return {
    remote_address: '',
    helo: '',
    mail_from: sender,
    recipients: [],
    smtputf8: false,
    tls: null,
    session: '',
    own: true,
  }
}

/** Text of an archive, of so many characters at most. */
const textOf = (max: number) => z.string().max(max).transform(withoutControls)

/** The maximum number of addresses of a message, and the shape of one. */
const maxEntries = 100
const Named = z.object({ ...Address.shape, address: textOf(320), name: textOf(1000) })

const Delivered = z.object({
  ...Delivery.shape,
  recipient: textOf(320),
  enhanced_code: textOf(32).nullable(),
  response: textOf(10_000).nullable(),
  mx: textOf(300).nullable(),
  tls: textOf(300).nullable(),
})

/** The state of a message in an archive, as far as it is imported; results of checks are never imported. */
const EmailState = z.object({
  direction: z.enum(['inbound', 'outbound']).optional(),
  status: EmailStatus.optional(),
  read: z.boolean().optional(),
  spam: z.boolean().optional(),
  labels: z.array(Label).max(100).optional(),
  to: textOf(100_000).optional(),
  tag: textOf(64).nullish(),
  mail_from: textOf(320).optional(),
  received_at: TimestampInput.optional(),
  sent_at: TimestampInput.nullish(),
  send_at: TimestampInput.nullish(),
  duplicate_of: z.string().nullish(),
  bcc: z.array(Named).max(maxEntries).optional(),
  deliveries: z.array(Delivered).max(maxEntries).optional(),
  /** From a file name or a `From ` line, for messages without a time of arrival in the header. */
  arrived_at: TimestampInput.optional(),
})
type EmailState = z.output<typeof EmailState>

/** Import hints in the header of an archived message. */
interface ImportHints {
  /** Time of arrival, from the newest Received field, in milliseconds since the epoch. */
  received: number | undefined
  /** From the Date field. */
  written: number | undefined
  read: boolean | undefined
  labels: string[]
  /** From the Return-Path field; empty for the null sender. */
  sender: string | undefined
}

/** Reads import hints: `Status` and `X-Status` of mail programs, `X-Gmail-Labels`, and the trace fields (RFC 5321 4.4). */
export async function importHintsIn(raw: Buffer): Promise<ImportHints> {
  const fields = headersOf(raw)
  const received = firstValue(fields, 'received')
  const sender = firstValue(fields, 'return-path')
  return {
    received: received === undefined ? undefined : parseTime(received.slice(received.lastIndexOf(';') + 1)),
    written: parseTime(firstValue(fields, 'date') ?? ''),
    ...(await flagsIn(fields)),
    sender: sender === undefined ? undefined : /<([^<>\s\p{Cc}]{0,320})>/u.exec(sender)?.[1],
  }
}

const flags: Record<string, string> = { A: 'answered', F: 'flagged', T: 'draft', D: 'deleted' }

async function flagsIn(fields: readonly HeaderField[]): Promise<{ read: boolean | undefined; labels: string[] }> {
  const status = firstValue(fields, 'status')
  const words = firstValue(fields, 'x-gmail-labels')
  // the main thread needs the message parser only here, and only for imports
  const given =
    words === undefined ? [] : (await import('../message/mime/mailparser.ts')).decodeWords(words.slice(0, 8000)).split(',')
  const named = given.map((word) => word.replaceAll('"', '').trim())
  const marked = Array.from(firstValue(fields, 'x-status')?.slice(0, 20) ?? '').flatMap((letter) => flags[letter] ?? [])
  const labels = [...marked, ...named.filter((word) => !/^(?:Unread|Opened)$/i.test(word))].filter(
    (word) => Label.safeParse(word).success,
  )
  const unread = named.some((word) => /^Unread$/i.test(word))
  const read = status === undefined ? (words === undefined ? undefined : !unread) : /R/.test(status.slice(0, 20))
  return { read, labels: [...new Set(labels)].slice(0, 100) }
}

function parseTime(text: string): number | undefined {
  const time = Date.parse(text.slice(0, 200).trim())
  return Number.isNaN(time) ? undefined : time
}
