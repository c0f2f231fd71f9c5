import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import { storageFull } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { EventLog } from '../events/log.ts'
import type { Identities } from '../identities/identities.ts'
import type { IdentityRow } from '../identities/identities.ts'
import { keepBlob, packJson } from '../store/blobs.ts'
import { sql } from '../store/database.ts'
import type { Database, Transaction } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import { mailbox, operatorMailboxes } from './address.ts'
import type { EmailBodies, EmailDetail } from './email-rows.ts'
import type { Examination, Examiner } from './examiner.ts'
import type { Mailroom } from './mailroom.ts'
import type { Email, Envelope } from './model.ts'
import { emailReceived } from './model.ts'
import { Refusal } from './refusal.ts'
import type { Screening } from './screening.ts'
import { indexable, ownerToken } from './search.ts'
import { addToThread, threadOf } from './threads.ts'
import { traceHeader } from './trace.ts'

/** Characters of a message that can be found again by search. */
const searchable = 256 * 1024

/** Characters of a body that an event carries; the e-mail itself has all of it. */
const eventBody = 256 * 1024

export interface InboxSettings {
  hostname: string
  domain: string
  /** Octets one identity may keep; 0 is no limit. */
  quota: number
  /** Whether a DNS failure in the verdict puts the message off. */
  strict_temperror: boolean
}

interface Parts {
  database: Database
  events: EventLog
  clock: Clock
  identities: Identities
  examiner: Examiner
  screening: Screening
  space: Space
  /** The account whose operator reads `postmaster`. */
  operatorAccount: string
  settings: InboxSettings
}

/** Where mail arrives: decides who is a recipient, has the message examined, and keeps it. */
export class Inbox implements Mailroom {
  readonly #database: Database
  readonly #events: EventLog
  readonly #clock: Clock
  readonly #identities: Identities
  readonly #examiner: Examiner
  readonly #screening: Screening
  readonly #space: Space
  readonly #operatorAccount: string
  #settings: InboxSettings

  constructor(parts: Parts) {
    this.#database = parts.database
    this.#events = parts.events
    this.#clock = parts.clock
    this.#identities = parts.identities
    this.#examiner = parts.examiner
    this.#screening = parts.screening
    this.#space = parts.space
    this.#operatorAccount = parts.operatorAccount
    this.#settings = parts.settings
  }

  reload(settings: InboxSettings): void {
    this.#settings = settings
  }

  /** Resolves when mail for the address is taken; throws the Refusal that RCPT answers otherwise. `size` is what MAIL declared. */
  async ownerOf(address: string, size = 0): Promise<void> {
    if (this.#space.low()) throw storageFull()
    const { local, domain } = mailbox(address, this.#settings.domain)
    if (domain !== this.#settings.domain) throw new Refusal(550, '5.7.1', `We do not take mail for ${domain}`)
    if (operatorMailboxes.has(local)) return
    const owner = await this.#identities.ownerOf(`${local}@${domain}`)
    if (!owner || owner.status === 'deleted') throw new Refusal(550, '5.1.1', 'No such mailbox here')
    if (owner.status === 'suspended') throw new Refusal(450, '4.2.1', 'This mailbox takes no mail for now')
    const { quota } = this.#settings
    if (quota > 0 && owner.stored_bytes + size >= quota) throw new Refusal(452, '4.2.2', 'This mailbox is full')
  }

  /** Keeps one copy a recipient, all or none; resolves with the queue id once that is on disk. */
  async keep(envelope: Envelope, raw: Buffer): Promise<string> {
    const [examined, unwanted] = await Promise.all([this.#examiner.examine(raw, envelope), this.#screening.isSpam(envelope, raw)])
    const { action, reply, authentication } = examined.verdict
    if (action === 'reject' && reply) throw new Refusal(reply.code, reply.enhanced, reply.text)
    if (this.#settings.strict_temperror && authentication.dmarc.result === 'temperror') {
      throw new Refusal(451, '4.4.3', 'The DNS gave no answer about the sender; try again later')
    }
    const spam = unwanted || action === 'spam'
    await this.#database.transaction((tx) => this.#store(tx, { envelope, raw, examined, spam }))
    return envelope.session
  }

  async #store(tx: Transaction, message: Message): Promise<void> {
    const { envelope, raw, examined } = message
    const owners: { owner: IdentityRow; recipient: string }[] = []
    for (const recipient of envelope.recipients) {
      const owner = await this.#owner(tx, recipient)
      if (owner) owners.push({ owner, recipient })
    }
    // deleted between RCPT and the end of DATA
    if (owners.length === 0) throw new Refusal(550, '5.1.1', 'No such mailbox here')
    const kept = {
      size: raw.length,
      sha256: Buffer.from(examined.sha256, 'hex'),
      deflated: examined.deflated !== null,
      bytes: examined.deflated ?? raw,
    }
    const { body_text, body_html, text } = examined.parsed
    const rawId = await keepBlob(tx, kept)
    const bodyId = await keepBlob(tx, packJson({ body_text, body_html, text } satisfies EmailBodies))
    for (const { owner, recipient } of owners) await this.#deliver(tx, { ...message, rawId, bodyId, owner, recipient })
  }

  async #deliver(tx: Transaction, copy: Copy): Promise<void> {
    const { envelope, examined, spam, owner, recipient, rawId, bodyId } = copy
    const { parsed, verdict } = examined
    const now = this.#clock.now()
    const at = iso(now)
    const id = newId('email')
    const { tag } = mailbox(recipient, this.#settings.domain)
    const from = parsed.from ?? { address: envelope.mail_from, name: '' }
    const to = recipient.includes('@') ? recipient : `${recipient}@${this.#settings.domain}`
    const earlier = await duplicateOf(tx, { ...copy, recipient: to }, now)
    const others = [from, ...parsed.to, ...parsed.cc].map((one) => one.address).filter((address) => address !== owner.email)
    const thread_id =
      earlier?.thread_id ?? (await threadOf(tx, { ...parsed, identity_id: owner.id, others, own: owner.email }, now))
    const trace = traceHeader({
      envelope,
      hostname: this.#settings.hostname,
      id,
      received_at: now,
      recipient,
      authentication_results: verdict.authentication_results,
    })
    const detail: EmailDetail = {
      references: parsed.references,
      reply_to: parsed.reply_to,
      cc: parsed.cc,
      bcc: [],
      recipients: { to: parsed.to, cc: parsed.cc, bcc: [] },
      links: parsed.links,
      attachments: parsed.attachments,
      authentication: verdict.authentication,
      parse_error: parsed.parse_error,
      mail_from: envelope.mail_from,
    }
    const row = await tx.get<{ seq: number }>(
      sql`INSERT INTO emails (id, identity_id, thread_id, direction, status, from_address, from_name, to_text, subject, snippet, read, spam,
        automated, tag, labels, size, has_attachments, verified_domain, message_id, in_reply_to, codes, received_at, created_at, detail, trace,
        duplicate_of, raw_id, body_id) VALUES (${id}, ${owner.id}, ${thread_id}, 'inbound', 'received', ${from.address}, ${from.name}, ${to},
        ${parsed.subject}, ${parsed.snippet}, 0, ${spam ? 1 : 0}, ${parsed.automated ? 1 : 0}, ${tag}, '[]', ${copy.raw.length},
        ${parsed.attachments.length > 0 ? 1 : 0}, ${verdict.verified_domain}, ${parsed.message_id}, ${parsed.in_reply_to},
        ${JSON.stringify(parsed.codes)}, ${at}, ${at}, ${JSON.stringify(detail)}, ${trace}, ${earlier?.id ?? null}, ${rawId}, ${bodyId}) RETURNING seq`,
    )
    await tx.run(sql`UPDATE identities SET stored_bytes = stored_bytes + ${copy.raw.length} WHERE id = ${owner.id}`)
    // the sender came again because our 250 was lost (RFC 1047): kept and marked, but it is no news
    if (earlier) return
    const seq = row!.seq
    const body = (parsed.body_text ?? parsed.text).slice(0, searchable)
    await tx.run(
      sql`INSERT INTO emails_search (rowid, owner, sender, subject, body) VALUES (${seq}, ${ownerToken(owner.id)},
        ${indexable(`${from.name} ${from.address}`)}, ${indexable(parsed.subject)}, ${indexable(body)})`,
    )
    await addToThread(tx, thread_id, { seq, at, snippet: parsed.snippet, unread: true, participants: [from.address, to] })
    const { mail_from: _, ...shown } = detail
    const data: Email = {
      id,
      identity_id: owner.id,
      thread_id,
      direction: 'inbound',
      status: 'received',
      from: from.address,
      from_name: from.name,
      to,
      subject: parsed.subject,
      snippet: parsed.snippet,
      read: false,
      spam,
      automated: parsed.automated,
      tag,
      labels: [],
      size: copy.raw.length,
      has_attachments: parsed.attachments.length > 0,
      verified_domain: verdict.verified_domain,
      message_id: parsed.message_id,
      in_reply_to: parsed.in_reply_to,
      codes: parsed.codes,
      received_at: at,
      sent_at: null,
      created_at: at,
      ...shown,
      ...cut(parsed),
      duplicate_of: null,
    }
    const blob = data.body_truncated ? {} : { blob: { id: bodyId, fields: ['body_text', 'body_html', 'text'] as const } }
    await this.#events.append(tx, emailReceived, { account_id: owner.account_id, identity_id: owner.id, data, ...blob })
  }

  async #owner(tx: Transaction, recipient: string): Promise<IdentityRow | undefined> {
    const { local, domain } = mailbox(recipient, this.#settings.domain)
    if (operatorMailboxes.has(local)) return this.#identities.operator(tx, this.#operatorAccount)
    const owner = await this.#identities.ownerOf(`${local}@${domain}`, tx)
    return owner && owner.status !== 'deleted' ? owner : undefined
  }
}

/** A message that was examined and is wanted. */
interface Message {
  envelope: Envelope
  raw: Buffer
  examined: Examination
  spam: boolean
}

/** One recipient's copy. */
interface Copy extends Message {
  rawId: number
  bodyId: number
  owner: IdentityRow
  recipient: string
}

/** The e-mail that the same envelope and octets made within the last 24 hours; never for mail without a Message-ID. */
async function duplicateOf(tx: Transaction, copy: Copy, now: number): Promise<{ id: string; thread_id: string } | undefined> {
  const { owner, examined, rawId, recipient, envelope } = copy
  if (examined.parsed.message_id === null) return undefined
  const rows = await tx.all<{ id: string; thread_id: string; to_text: string; detail: string }>(
    sql`SELECT emails.id, emails.thread_id, emails.to_text, emails.detail FROM emails JOIN blobs ON blobs.id = emails.raw_id WHERE identity_id = ${owner.id}
      AND message_id = ${examined.parsed.message_id} AND raw_id <> ${rawId} AND blobs.sha256 = ${Buffer.from(examined.sha256, 'hex')} AND duplicate_of IS NULL
      AND deleted_at IS NULL AND received_at > ${iso(now - 86_400_000)} LIMIT 20`,
  )
  return rows.find((row) => row.to_text === recipient && (JSON.parse(row.detail) as EmailDetail).mail_from === envelope.mail_from)
}

function cut(parsed: EmailBodies): EmailBodies & { body_truncated?: true } {
  const { body_text, body_html, text } = parsed
  const long = Math.max(body_text?.length ?? 0, body_html?.length ?? 0, text.length) > eventBody
  if (!long) return { body_text, body_html, text }
  const short = (value: string | null): string | null => value && value.slice(0, eventBody)
  return { body_text: short(body_text), body_html: short(body_html), text: text.slice(0, eventBody), body_truncated: true }
}
