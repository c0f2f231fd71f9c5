import { dropOrigins } from '../accounts/key-ancestry.ts'
import { type Clock, iso } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import { release } from '../core/memory.ts'
import type { HoldState } from '../core/shapes.ts'
import type { EventType } from '../events/model.ts'
import { type IdentityRow, present } from '../identities/row.ts'
import type { RawMessages } from '../objects/raw-messages.ts'
import { type Database, type Reader, sql, type Transaction } from '../store/database.ts'
import type { EmailStore } from './email-store.ts'
import { deliveriesOf, deliveryOf, type RecipientRow, overallStatus } from './deliveries.ts'
import { type EmailDetail, emailWithoutBodies, type StoredEmail } from './email-rows.ts'
import type { Examination } from './types.ts'
import type { Address, Delivery, Email } from './model.ts'
import { isExternal } from './address.ts'

/** A composed message of an identity, examined. */
interface OutgoingMessage {
  owner: IdentityRow
  /** The sender address: the primary one of the owner, or an alias. */
  from: string
  raw: Buffer
  examined: Examination
  /** All recipients, in the order to, cc, bcc. */
  recipients: { field: RecipientRow['field']; address: Address }[]
  labels: string[]
  /** ISO 8601; null for at once. */
  send_at: string | null
  /** The key or session that sends it; null for messages of the box itself. */
  created_by: string | null
  /** The header fields that are prepended to the raw message: date and signatures, lines with CRLF; empty when it is signed later. */
  trace: string
  /** Of a message that a person is to see before it leaves. */
  hold?: HoldState | null
  require_tls?: boolean
  /** Its thread, if given explicitly. */
  thread_id?: string | null
}

export interface StoredMessage {
  email: Email
  recipients: RecipientRow[]
}

/** The data a courier needs to deliver a message to one recipient. */
export interface QueuedEmail {
  recipient: RecipientRow
  email: StoredEmail
  account_id: string
  identity_status: IdentityRow['status']
}

/** Characters of each reply in the `deliveries` of an event, as every recipient has events, with all recipients in each. */
const longestReply = 100

/** Outbound messages as stored: their rows, raw messages, threads, and the state of each delivery. */
export class OutgoingEmails {
  readonly #database: Database
  readonly #clock: Clock
  readonly #store: EmailStore
  readonly #raw: RawMessages

  constructor(deps: { database: Database; clock: Clock; store: EmailStore; raw: RawMessages }) {
    this.#raw = deps.raw
    this.#database = deps.database
    this.#clock = deps.clock
    this.#store = deps.store
  }

  /** Prepares a message for `insert`, before the transaction. Throws Fault `storage_unavailable`. */
  prepare(raw: Buffer, examined: Examination): Promise<Examination> {
    return this.#store.prepare(raw, examined)
  }

  /** Stores a message with a row for each recipient, queued or scheduled, and appends an event of this type. */
  async insert(tx: Transaction, message: OutgoingMessage, event: EventType<Email>): Promise<StoredMessage> {
    const { owner, from, raw, examined, trace, send_at } = message
    const at = iso(this.#clock.now())
    const content = await this.#store.insertContent(tx, raw, examined, { shared: true })
    const email = await this.#store.insert(tx, {
      owner,
      email: outboundEmail(message, at),
      parsed: examined.parsed,
      content,
      address: from,
      participants: [from, ...new Set(message.recipients.map(({ address }) => address.address))],
      mail_from: from,
      trace,
      thread_id: message.thread_id,
    })
    if (message.hold && message.require_tls) await this.keepRequireTls(tx, email.id)
    const recipients = []
    for (const [position, { field, address }] of message.recipients.entries()) {
      const row = await tx.get<RecipientRow>(
        sql`INSERT INTO email_recipients (email_id, position, field, address, status, next_attempt_at) VALUES (${email.id}, ${position},
          ${field}, ${address.address}, ${email.status}, ${message.hold ? null : (send_at ?? at)}) RETURNING *`,
      )
      recipients.push(row!)
    }
    const kept = { ...email, deliveries: recipients.map(deliveryOf) }
    const { account_id } = owner
    await this.#store.appendEvent(tx, event, { account_id, content, email: kept }, {})
    return { email: kept, recipients }
  }

  /** Notes in a held message that it is sent by TLS only: it has no delivery yet that says so. */
  async keepRequireTls(tx: Transaction, emailId: string): Promise<void> {
    await tx.run(sql`UPDATE emails SET detail = json_set(detail, '$.require_tls', json('true')) WHERE id = ${emailId}`)
  }

  /** The state of the delivery to one recipient; undefined when the message was deleted. */
  recipient(seq: number, reader: Reader): Promise<RecipientRow | undefined> {
    return reader.get<RecipientRow>(sql`SELECT * FROM email_recipients WHERE seq = ${seq}`)
  }

  /** The data for the delivery to one recipient; undefined when the message was deleted. */
  async queuedEmail(recipientSeq: number, reader: Reader = this.#database): Promise<QueuedEmail | undefined> {
    const recipient = await this.recipient(recipientSeq, reader)
    const email =
      recipient &&
      (await reader.get<StoredEmail & Pick<QueuedEmail, 'account_id' | 'identity_status'> & Pick<IdentityRow, 'expires_at'>>(
        sql`SELECT emails.*, identities.account_id, identities.status AS identity_status, identities.expires_at FROM emails
          JOIN identities ON identities.id = emails.identity_id WHERE emails.id = ${recipient.email_id}`,
      ))
    if (!email) return undefined
    const { account_id, identity_status: status, expires_at } = email
    const identity = present({ status, expires_at }, this.#clock)
    return { recipient, email, account_id, identity_status: identity!.status }
  }

  /** The raw message with signatures prepended; undefined when it was deleted. */
  async rawMessage({
    raw_id,
    raw_expired_at,
    trace,
  }: Pick<StoredEmail, 'raw_id' | 'raw_expired_at' | 'trace'>): Promise<Buffer | undefined> {
    const raw = raw_expired_at === null ? await this.#raw.read(raw_id) : undefined
    if (!raw) return undefined
    const whole = Buffer.concat([Buffer.from(trace), raw])
    release(raw)
    return whole
  }

  /** Sets the prepended header fields, and the time of a scheduled message (ISO 8601). */
  async setTrace(tx: Transaction, emailId: string, { trace, send_at }: { trace: string; send_at?: string }): Promise<void> {
    const row = await tx.get<Pick<StoredEmail, 'detail'>>(sql`SELECT detail FROM emails WHERE id = ${emailId}`)
    if (!row) return
    const before = JSON.parse(row.detail) as EmailDetail
    const detail = send_at === undefined ? before : { ...before, send_at }
    await tx.run(sql`UPDATE emails SET trace = ${trace}, detail = ${JSON.stringify(detail)} WHERE id = ${emailId}`)
  }

  /**
   * Updates the state of the delivery to one recipient, and the status of the message. Returns that delivery. A bounce is final: later updates
   * change neither status nor response. `recipient` is a sequence number, or a row read in the same transaction.
   */
  async updateDelivery(
    tx: Transaction,
    recipient: number | RecipientRow,
    change: Partial<Omit<RecipientRow, 'seq'>>,
  ): Promise<Delivery | undefined> {
    const before = typeof recipient === 'number' ? await this.recipient(recipient, tx) : recipient
    if (!before) return undefined
    const row = { ...before, ...change, ...(before.status === 'bounced' ? bounceFields(before) : {}) }
    await tx.run(
      sql`UPDATE email_recipients SET status = ${row.status}, smtp_code = ${row.smtp_code}, enhanced_code = ${row.enhanced_code},
        response = ${row.response}, mx = ${row.mx}, tls = ${row.tls}, attempts = ${row.attempts}, next_attempt_at = ${row.next_attempt_at},
        delivered_at = ${row.delivered_at}, bounced_at = ${row.bounced_at}, complained_at = ${row.complained_at},
        delivery_id = ${row.delivery_id}, suspended = ${row.suspended} WHERE seq = ${row.seq}`,
    )
    if (row.status !== before.status) await this.#updateStatus(tx, row.email_id)
    // from now on it is sent or cancelled, whatever becomes of the key that scheduled it
    if (waits(before.status) && !waits(row.status)) await dropOrigins(tx, [row.email_id])
    return deliveryOf(row)
  }

  /** True if this recipient is outside of the sending account. */
  async isExternalRecipient(reader: Reader, { email_id, address }: RecipientRow): Promise<boolean> {
    const sender = await reader.get<{ account_id: string }>(
      sql`SELECT account_id FROM emails JOIN identities ON identities.id = emails.identity_id WHERE emails.id = ${email_id}`,
    )
    return sender !== undefined && isExternal(reader, sender.account_id, address)
  }

  /** Appends an event for a message, with further fields. Of long replies it has the beginning. */
  async appendEvent<Data extends Email>(
    tx: Transaction,
    type: EventType<Data>,
    emailId: string,
    more: Omit<Data, keyof Email>,
    annotation: string | null = null,
  ): Promise<void> {
    const row = await tx.get<StoredEmail & { account_id: string }>(
      sql`SELECT emails.*, identities.account_id FROM emails JOIN identities ON identities.id = emails.identity_id WHERE emails.id = ${emailId}`,
    )
    if (!row) return
    const { account_id, body_id } = row
    const all = (await deliveriesOf(tx, [emailId])).get(emailId) ?? []
    const deliveries = all.map((one) => ({ ...one, response: one.response?.slice(0, longestReply) ?? null }))
    const content = { body_id, event: await this.#store.sharedEvent(tx, body_id) }
    const email = { ...(await emailWithoutBodies(tx, row)), deliveries }
    await this.#store.appendEvent(tx, type, { account_id, content, email, annotation }, more)
  }

  async #updateStatus(tx: Transaction, emailId: string): Promise<void> {
    const rows = await tx.all<Pick<RecipientRow, 'status'>>(sql`SELECT status FROM email_recipients WHERE email_id = ${emailId}`)
    const status = overallStatus(rows.map((row) => row.status))
    const isSent = rows.some((row) => row.status === 'delivered' || row.status === 'sent')
    await tx.run(
      sql`UPDATE emails SET status = ${status}, sent_at = coalesce(sent_at, ${isSent ? iso(this.#clock.now()) : null})
        WHERE id = ${emailId} AND (status <> ${status} OR (sent_at IS NULL AND ${isSent ? 1 : 0} = 1))`,
    )
  }
}

/** True while a message ends with the key that made it. */
function waits(status: Delivery['status']): boolean {
  return status === 'scheduled' || status === 'held'
}

// the bounce report may arrive before the 250 is recorded
function bounceFields({ status, smtp_code, enhanced_code, response, next_attempt_at }: RecipientRow): Partial<RecipientRow> {
  return { status, smtp_code, enhanced_code, response, next_attempt_at }
}

function outboundEmail(message: OutgoingMessage, at: string): Email {
  const { owner, from, raw, recipients, labels, send_at, created_by, examined, hold = null } = message
  const { parsed } = examined
  const of = (field: RecipientRow['field']): Address[] =>
    recipients.filter((one) => one.field === field).map(({ address }) => address)
  return {
    id: newId('email'),
    identity_id: owner.id,
    thread_id: '',
    direction: 'outbound',
    status: hold ? 'held' : send_at === null ? 'queued' : 'scheduled',
    from,
    from_name: parsed.from?.name ?? '',
    to: of('to')
      .map(({ address }) => address)
      .join(', '),
    subject: parsed.subject,
    snippet: parsed.snippet,
    read: true,
    spam: false,
    automated: parsed.automated,
    tag: null,
    labels,
    size: raw.length,
    has_attachments: parsed.attachments.length > 0,
    verified_domain: null,
    message_id: parsed.message_id,
    in_reply_to: parsed.in_reply_to,
    codes: [],
    received_at: at,
    sent_at: null,
    created_at: at,
    references: parsed.references,
    reply_to: parsed.reply_to,
    reply_to_verified: null,
    cc: of('cc'),
    bcc: of('bcc'),
    recipients: { to: of('to'), cc: of('cc'), bcc: of('bcc') },
    body_text: parsed.body_text,
    body_html: parsed.body_html,
    text: parsed.text,
    links: parsed.links,
    attachments: parsed.attachments,
    authentication: null,
    screening: null,
    set_aside: null,
    hold,
    parse_error: parsed.parse_error,
    send_at,
    created_by,
    deliveries: [],
    duplicate_of: null,
  }
}
