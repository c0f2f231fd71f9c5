import type { Basis } from '../basis.ts'
import { day, hour, minute } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { type Courier, TemporaryFailure, PermanentFailure } from '../queue/courier.ts'
import type { Queue } from '../queue/queue.ts'
import type { EventHeader } from '../events/model.ts'
import type { Identities, IdentityRow } from '../identities/identities.ts'
import type { EmailDetail, StoredEmail } from '../mail/email-rows.ts'
import { emailReceived } from '../mail/model.ts'
import { sql, type Transaction } from '../store/database.ts'
import type { SendService } from './compose/send-service.ts'
import type { Outbox } from './compose/outbox.ts'
import { forwardSubject } from './compose/quoting.ts'
import { recipientAddress, sameMailbox } from './compose/recipients.ts'

interface Load {
  email_id: string
}

interface Deps extends Pick<Basis, 'database' | 'log'> {
  queue: Queue
  identities: Identities
  sendService: SendService
  outbox: Outbox
  /** The domain of the box, whose postmaster is the operator. */
  domain: string
  /** `mail.postmaster` */
  address: string | undefined
}

/**
 * Forwards mail for postmaster and abuse (RFC 5321 4.5.1) to `mail.postmaster`, each message as an attachment. To avoid loops it does not forward
 * bounces, mail from that address, and replies to forwarded messages.
 */
export class OperatorMail implements Courier<Load> {
  readonly kind = 'operator-mail'
  readonly schedule = [0, minute, 15 * minute, hour, 4 * hour, 12 * hour, day]
  readonly jitter = 0.1
  readonly #deps: Deps
  #address: string | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#address = deps.address
  }

  reload(address: string | undefined): void {
    this.#address = address
  }

  /** All of these events except those of mail to other identities. */
  async concerns(events: EventHeader[]): Promise<EventHeader[]> {
    const came = this.#address !== undefined && events.some(({ type }) => type === emailReceived.name)
    const owner = came ? await this.#operator() : undefined
    return events.filter(({ type, identity_id }) => type !== emailReceived.name || (owner && identity_id === owner.id))
  }

  /** Handles events of the log. */
  async handle(tx: Transaction, events: EventHeader[]): Promise<void> {
    for (const { type, resource_id } of events) {
      if (type !== emailReceived.name || resource_id === null) continue
      const load: Load = { email_id: resource_id }
      await this.#deps.queue.enqueue(tx, { kind: this.kind, lane: 'postmaster', load })
    }
  }

  async deliver({ email_id }: Load, _attempt: number, signal: AbortSignal): Promise<string> {
    const { database, sendService, outbox } = this.#deps
    const owner = await this.#operator()
    const address = this.#address
    const row = await database.get<StoredEmail>(sql`SELECT * FROM emails WHERE id = ${email_id}`)
    if (!owner || !row || address === undefined) return 'the message no longer exists'
    const why = await this.#reasonAgainst(row, owner, address)
    if (why !== undefined) return why
    signal.throwIfAborted()
    try {
      const addressees = [{ field: 'to' as const, address: recipientAddress(address, 'to') }]
      const envelope = await outbox.admit({ caller: null, owner, from: owner.email, addressees, send_at: null })
      const sent = await outbox.accept(envelope, {
        subject: forwardSubject(row.subject),
        text: `The attached message was received for ${row.to_text} from ${row.from_address || 'the null sender'}.\n`,
        html: null,
        reply_to: [],
        headers: [],
        attachments: [await sendService.asAttachment(row)],
        labels: ['forwarded'],
        auto_submitted: 'auto-generated',
        require_tls: false,
        in_reply_to: null,
        references: [],
        thread_id: null,
      })
      return `forwarded as ${sent.id}`
    } catch (error) {
      if (!(error instanceof Fault) || error.type === 'internal_error') throw error
      this.#deps.log.warn({ email: email_id, why: error.message }, 'mail for the operator could not be forwarded')
      if (error.type === 'invalid_request') throw new PermanentFailure(error.message)
      throw new TemporaryFailure(error.message, error.retryAfter === undefined ? undefined : error.retryAfter * 1000)
    }
  }

  async #reasonAgainst(row: StoredEmail, owner: IdentityRow, address: string): Promise<string | undefined> {
    const { mail_from, references = [] } = JSON.parse(row.detail) as EmailDetail
    if (row.spam === 1) return 'it is spam'
    if (mail_from === '') return 'it is a bounce'
    if ([row.from_address, mail_from].some((one) => sameMailbox(one, address) || sameMailbox(one, owner.email))) {
      return 'it comes from the forwarding address'
    }
    const to = await this.#deps.identities.ownerOf(address)
    if (to?.id === owner.id) return 'mail.postmaster is this mailbox'
    const ids = [...references, ...[row.in_reply_to ?? []].flat()]
    if (ids.length === 0) return undefined
    const answer = await this.#deps.database.get(
      // only the first message of each Message-ID, which is ours if we made it: others can send any number with the same
      sql`SELECT 1 FROM (
          SELECT (SELECT seq FROM emails WHERE identity_id = ${owner.id} AND message_id = ids.value ORDER BY seq LIMIT 1) AS seq
          FROM json_each(${JSON.stringify(ids.slice(-51))}) AS ids
        ) AS named JOIN emails ON emails.seq = named.seq WHERE direction = 'outbound' AND automated = 1`,
    )
    return answer === undefined ? undefined : 'it replies to a forwarded message'
  }

  #operator(): Promise<IdentityRow | undefined> {
    return this.#deps.identities.ownerOf(`postmaster@${this.#deps.domain}`)
  }
}
