import type { Basis } from '../../basis.ts'
import { hour, minute } from '../../core/clock.ts'
import { conflict } from '../../core/fault.ts'
import { release } from '../../core/memory.ts'
import { newId } from '../../core/ids.ts'
import { loggable } from '../../core/log.ts'
import type { Counter } from '../../core/metrics.ts'
import {
  type Courier,
  type AttemptResult,
  TemporaryFailure,
  type AttemptNotes,
  type Outcome,
  PermanentFailure,
  type ServerAnswer,
} from '../../queue/courier.ts'
import { type Attempt, attemptsOf } from '../../queue/history.ts'
import type { Domains } from '../../domains/domains.ts'
import { isOwn } from '../../mail/address.ts'
import type { IdentityRow } from '../../identities/identities.ts'
import type { Inbox } from '../../mail/inbox.ts'
import type { OutgoingEmails, QueuedEmail } from '../../mail/outgoing.ts'
import { Refusal } from '../../smtp/replies.ts'
import { type Reader, sql, type Transaction } from '../../store/database.ts'
import { AttemptBounds, noteSecurity, serverIn, type Timeouts, writeAttempt } from './attempt-bounds.ts'
import { LocalDelivery } from './local-delivery.ts'
import type { SmtpDelivery, ServerListener } from './smtp-delivery.ts'
import { emailKind, type EmailLoad } from '../model.ts'
import { answerOf, type Outcomes, readAnswer } from './outcomes.ts'
import { domainOf } from '../compose/recipients.ts'
import type { DkimSigner } from '../compose/signing.ts'
import type { ReturnPaths } from '../return-path.ts'
import { readReply, failureOf } from './smtp-reply.ts'
import type { Suppressions } from '../suppressions.ts'
import { type TransportAnswer, later, refused, suspended, Undelivered } from './undelivered.ts'
import type { Routing } from './routing.ts'

/** How mail is sent, by the current settings. */
export interface Transport {
  hostname: string
  routing: Routing
  smtpDelivery: SmtpDelivery
}

interface Deps extends Pick<Basis, 'database' | 'log' | 'metrics'> {
  outgoing: OutgoingEmails
  inbox: Inbox
  domains: Domains
  suppressions: Suppressions
  returnPaths: ReturnPaths
  signer: DkimSigner
  outcomes: Outcomes
  transport: () => Transport
  timeout?: Timeouts | undefined
}

/** Maximum early retries of a message, which greylisting servers cause. */
const maxEarlyRetries = 12

/**
 * Consecutive crashes of the box during attempts of a message after which it waits, so that it is attempted apart from others, and crashes in
 * all after which it fails: messages that were only attempted at the same time are delivered by then.
 */
const maxCrashes = { running: 3, all: 9 }

/** Delivers the copy of each recipient: to an own inbox, to a relay, or to the servers of the domain. */
export class MailCourier implements Courier<EmailLoad, TransportAnswer> {
  readonly kind = emailKind
  readonly stops = true
  /** 0, 1, 5, 15, 30 min, 1, 2, 4 h, and every 4 h until five days are over. */
  readonly schedule = [
    0,
    minute,
    5 * minute,
    15 * minute,
    30 * minute,
    hour,
    2 * hour,
    4 * hour,
    ...Array.from({ length: 28 }, () => 4 * hour),
  ]
  readonly jitter = 0.2
  readonly limits = { healthy: 20, busy: 5, slow: 1 }
  // greetings and content filters of receivers take long
  readonly slowAfter = 30_000
  readonly #deps: Deps
  readonly #deliveries: Counter<'result' | 'tls'>
  readonly #bounds: AttemptBounds
  readonly #local: LocalDelivery

  constructor(deps: Deps) {
    this.#deps = deps
    this.#bounds = new AttemptBounds(deps.timeout)
    this.#local = new LocalDelivery(deps)
    this.#deliveries = deps.metrics.counter(
      'pillarbox_mail_deliveries_total',
      'Delivery attempts of mail, by result and encryption: checked (verified TLS), unchecked, none (no TLS, or no connection)',
      ['result', 'tls'],
    )
  }

  async begin(tx: Transaction, { recipient_seq }: EmailLoad, attempt: number): Promise<void> {
    await this.#deps.outgoing.updateDelivery(tx, recipient_seq, { status: 'sending', attempts: attempt, next_attempt_at: null })
  }

  async deliver(load: EmailLoad, attempt: number, signal: AbortSignal, notes: AttemptNotes): Promise<TransportAnswer> {
    try {
      const answer = await this.#attempt(load, attempt, signal, notes)
      this.#count(answer, notes)
      return answer
    } catch (error) {
      if (!(error instanceof Undelivered)) throw error
      const { permanent, maxDelay } = error
      noteSecurity(notes, error.security)
      // an aborted attempt names its last server
      const answer = error.answer.mx === null ? { ...error.answer, ...serverIn(notes) } : error.answer
      this.#count(answer, notes)
      if (permanent) throw new PermanentFailure(answer)
      const soon = maxDelay !== undefined && (await this.#mayRetryEarly(load))
      throw new TemporaryFailure(soon ? { ...answer, soon } : answer, undefined, soon ? maxDelay : undefined)
    }
  }

  settle(
    tx: Transaction,
    { recipient_seq }: EmailLoad,
    outcome: Outcome,
    answer: TransportAnswer | string,
    next?: string,
  ): Promise<void> {
    return this.#deps.outcomes.note(tx, recipient_seq, outcome, answerOf(answer), next)
  }

  finished(end: AttemptResult<EmailLoad, TransportAnswer>): void {
    writeAttempt(this.#deps.log, end, answerOf(end.answer))
  }

  async describe(reader: Reader, { recipient_seq }: EmailLoad): Promise<Record<string, string>> {
    const queuedEmail = await this.#deps.outgoing.queuedEmail(recipient_seq, reader)
    if (!queuedEmail) return {}
    const { email, recipient } = queuedEmail
    return { email_id: email.id, from: email.from_address, to: recipient.address }
  }

  answerText(answer: string): string {
    return readAnswer(answer).response
  }

  serverAnswer(answer: string): ServerAnswer {
    const { smtp_code, enhanced_code, response, mx, ip = null, tls } = readAnswer(answer)
    return { smtp_code, enhanced_code, response, mx, ip, tls }
  }

  /** Only failed deliveries, not bounced or cancelled ones. */
  async retry(tx: Transaction, { recipient_seq }: EmailLoad): Promise<void> {
    const recipient = await this.#deps.outgoing.recipient(recipient_seq, tx)
    if (recipient?.status !== 'failed') {
      const why = recipient ? `The delivery was ${recipient.status}` : 'The message was deleted'
      throw conflict(`${why}: it is not retried.`, { code: 'not_repeatable' })
    }
    await this.#deps.outgoing.updateDelivery(tx, recipient, { status: 'queued' })
  }

  async #attempt(load: EmailLoad, attempt: number, signal: AbortSignal, notes: AttemptNotes): Promise<TransportAnswer> {
    const { outgoing, domains, returnPaths, transport } = this.#deps
    const queuedEmail = await outgoing.queuedEmail(load.recipient_seq)
    if (!queuedEmail) throw refused('the message was deleted', { cancelled: true })
    const { email, recipient } = queuedEmail
    const { id: email_id, message_id, from_address } = email
    Object.assign(notes, { message_id, email_id, from: from_address, to: loggable(recipient.address, 320) })
    await this.#check(queuedEmail, attempt)
    const from = returnPaths.addressFor(recipient.seq, domainOf(email.from_address), sendTimeOf(email))
    const to = `${recipient.address.slice(0, recipient.address.lastIndexOf('@'))}@${domainOf(recipient.address)}`
    notes['return_path'] = from
    if (load.own === true && !(await isOwn(this.#deps.database, queuedEmail.account_id, to)))
      throw refused('the recipient is no longer an address of this account, and a policy may hold what is sent elsewhere')
    if (domains.receives(domainOf(to))) return this.#deliverLocally(queuedEmail, { from, to }, signal, notes)
    this.#requireSending(domainOf(email.from_address), domainOf(to))
    const { routing, smtpDelivery } = transport()
    const require_tls = load.require_tls === true
    const { account_id: account } = queuedEmail
    return this.#bounds.run({ account, size: email.size }, signal, async (limited, reserve) => {
      const route = await routing.to(domainOf(to), require_tls)
      const read = async (): Promise<Buffer> => {
        await this.#requireNotStopped(queuedEmail)
        reserve()
        return this.#raw(queuedEmail)
      }
      const onServer: ServerListener = ({ hostname: mx, address: ip }) => void Object.assign(notes, { mx, ip })
      const receipt = await smtpDelivery.deliver(route, { from, to, require_tls }, read, limited, onServer)
      const { response, hostname: mx, address: ip, tls, security } = receipt
      noteSecurity(notes, security)
      return { ...accepted(response), outcome: route.outcome, mx, ip, tls }
    })
  }

  /** True if the next attempt may come earlier than planned, which is limited for each message. */
  async #mayRetryEarly({ recipient_seq }: EmailLoad): Promise<boolean> {
    const queuedEmail = await this.#deps.outgoing.queuedEmail(recipient_seq)
    if (!queuedEmail) return false
    const attempts = await this.#attemptsOf(queuedEmail)
    return attempts.filter(({ answer }) => answer !== null && readAnswer(answer).soon === true).length < maxEarlyRetries
  }

  async #attemptsOf({ recipient: { delivery_id } }: QueuedEmail): Promise<Attempt[]> {
    return delivery_id === null ? [] : ((await attemptsOf(this.#deps.database, [delivery_id])).get(delivery_id) ?? [])
  }

  /** The message as it leaves: signed anew if the keys were rotated since, as the records of the former leave the DNS. */
  async #raw({ email }: QueuedEmail): Promise<Buffer> {
    const { outgoing, signer, database } = this.#deps
    const found = await outgoing.rawMessage(email)
    if (!found) throw refused('the message no longer exists')
    const trace = await signer.renewed(domainOf(email.from_address), email.trace, found)
    if (trace === undefined) return found
    // stored, so that every further attempt sends the same bytes
    await database.transaction((tx) => outgoing.setTrace(tx, email.id, { trace }))
    const message = Buffer.concat([Buffer.from(trace), found.subarray(Buffer.byteLength(email.trace))])
    release(found)
    return message
  }

  /** Checks what may have changed since the message was queued. */
  async #check(queuedEmail: QueuedEmail, attempt: number): Promise<void> {
    const { recipient, account_id, identity_status } = queuedEmail
    const { suppressions, database } = this.#deps
    // the server accepted the message although we did not get its reply
    if (recipient.status === 'bounced') throw refused('a bounce was received in the meantime')
    requireActive(identity_status)
    if ((await suppressions.among(database, account_id, [recipient.address])).length > 0) {
      throw refused(`${recipient.address} is suppressed`, { enhanced_code: '5.7.1' })
    }
    if (attempt <= maxCrashes.running) return
    // an attempt that the box aborted has an answer
    const ended = (await this.#attemptsOf(queuedEmail)).filter(({ number }) => number < attempt)
    const crashes = ended.map(({ outcome, answer }) => outcome === 'interrupted' && answer === null)
    const all = crashes.filter(Boolean).length
    if (all >= maxCrashes.all) throw refused(`the box crashed ${all} times while sending this message; it is not retried`)
    if (crashes.slice(-maxCrashes.running).every(Boolean)) {
      throw later('the box crashed repeatedly while sending this message; it is retried alone')
    }
  }

  /** The account or the identity may have been stopped while the server was reached, which can take minutes; from here on the message is handed over. */
  async #requireNotStopped({ account_id, email }: QueuedEmail): Promise<void> {
    const row = await this.#deps.database.get<{ status: IdentityRow['status']; stopped: number }>(
      sql`SELECT status, EXISTS (SELECT 1 FROM stopped_accounts WHERE account_id = ${account_id}) AS stopped
        FROM identities WHERE id = ${email.identity_id}`,
    )
    if (row?.stopped === 1) throw later('the account that sent it is stopped')
    requireActive(row?.status ?? 'deleted')
  }

  #requireSending(from: string, to: string): void {
    try {
      this.#deps.domains.requireSending(from, to)
    } catch (error) {
      throw later(error instanceof Error ? error.message : `${from} may not send`, '4.7.1')
    }
  }

  /** Delivers to a recipient on this box, without the network. */
  async #deliverLocally(
    queuedEmail: QueuedEmail,
    { from, to }: { from: string; to: string },
    signal: AbortSignal,
    notes: AttemptNotes,
  ): Promise<TransportAnswer> {
    const { transport } = this.#deps
    const envelope = {
      remote_address: '127.0.0.1',
      helo: transport().hostname,
      mail_from: from,
      recipients: [to],
      smtputf8: false,
      tls: null,
      session: queuedEmail.recipient.delivery_id ?? newId('dlv'),
      own: true as const,
    }
    try {
      notes['email_ids'] = await this.#local.deliver(queuedEmail, envelope, signal)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      throw failureOf(`${error.code} ${error.enhanced} ${error.text}`, 'rcpt').at({
        hostname: transport().hostname,
        address: null,
        tls: null,
        security: null,
      })
    }
    return { ...accepted('accepted by this box'), outcome: 'delivered', mx: transport().hostname, ip: null, tls: null }
  }

  #count({ outcome }: TransportAnswer, { verified }: AttemptNotes): void {
    const encrypted = verified === undefined ? 'none' : verified === true ? 'checked' : 'unchecked'
    this.#deliveries.labels(outcome, encrypted).inc()
  }
}

/** Throws Undelivered when the identity that wrote the message sends nothing. */
function requireActive(status: IdentityRow['status']): void {
  if (status === 'deleted') throw refused('the identity that sent it was deleted', { cancelled: true })
  if (status === 'suspended') throw suspended()
}

function accepted(response: string): Omit<TransportAnswer, 'outcome' | 'mx' | 'ip' | 'tls'> {
  const { code, enhanced, text } = readReply(response)
  return { smtp_code: code === 0 ? null : code, enhanced_code: enhanced, response: text }
}

/** The time the message is sent, in milliseconds since the Unix epoch. */
function sendTimeOf({ detail, received_at }: QueuedEmail['email']): number {
  const { send_at } = JSON.parse(detail) as { send_at?: string }
  return Date.parse(send_at ?? received_at)
}
