import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { loggable } from '../core/log.ts'
import type { Counter } from '../core/metrics.ts'
import type { Queue } from '../queue/queue.ts'
import type { ParsedAddress } from '../mail/address.ts'
import type { ExaminedMessage } from '../mail/types.ts'
import type { SystemAddressHandler } from '../smtp/delivery-target.ts'
import type { Envelope } from '../mail/model.ts'
import type { OutgoingEmails, QueuedEmail } from '../mail/outgoing.ts'
import type { DeliveryReport, FeedbackReport, ReportedRecipient } from '../message/reports/reported.ts'
import type { Transaction } from '../store/database.ts'
import { isHard } from './transport/smtp-reply.ts'
import { emailBounced, emailComplained, emailDelivered } from './model.ts'
import { sameMailbox } from './compose/recipients.ts'
import { isReturnPath, type ReturnPaths } from './return-path.ts'
import type { Suppressions } from './suppressions.ts'

interface Deps extends Pick<Basis, 'clock' | 'log' | 'metrics'> {
  queue: Queue
  outgoing: OutgoingEmails
  suppressions: Suppressions
  returnPaths: ReturnPaths
}

/** The result of a message that came to a return path, or of a report. */
type Outcome = 'bounced' | 'delayed' | 'delivered' | 'relayed' | 'complained' | 'automatic' | 'unknown' | 'idle'

/**
 * Handles mail to return paths: reads reports on mail that the box sent and updates the recipient of the address. Such mail is not stored as an
 * e-mail and never answered.
 */
export class Bounces implements SystemAddressHandler {
  readonly #deps: Deps
  readonly #counter: Counter<'outcome'>

  constructor(deps: Deps) {
    this.#deps = deps
    this.#counter = deps.metrics.counter(
      'pillarbox_returned_total',
      'Replies to sent messages: bounced, delayed, delivered, relayed, complained, automatic (automatic replies), unknown (no report), idle (a report without effect, such as a repeat)',
      ['outcome'],
    )
  }

  /** Refuses an unknown or expired token at RCPT, against backscatter. */
  classify({ local, tag }: ParsedAddress): ReturnType<SystemAddressHandler['classify']> {
    if (!isReturnPath(local)) return 'unknown'
    return this.#deps.returnPaths.read(tag ?? '') === undefined ? 'refused' : 'accepted'
  }

  async receive(tx: Transaction, { tag }: ParsedAddress, { envelope, examined }: ExaminedMessage): Promise<void> {
    const { outgoing, returnPaths } = this.#deps
    const seq = returnPaths.read(tag ?? '')
    // the message was deleted meanwhile
    const queuedEmail = seq === undefined ? undefined : await outgoing.queuedEmail(seq, tx)
    const { report, automated } = examined.parsed
    const outcome = !queuedEmail
      ? 'idle'
      : report?.kind === 'delivery'
        ? await this.#returned(tx, queuedEmail, report)
        : report?.kind === 'feedback'
          ? await this.#complained(tx, queuedEmail, report)
          : automated
            ? 'automatic'
            : 'unknown'
    const reply = report?.kind === 'delivery' && queuedEmail ? report : null
    this.#note(tx, outcome, envelope, queuedEmail, reply)
  }

  /** Counts a feedback report that came to a mailbox (`abuse`, or the sender's own) when it names one of our return paths. */
  async receiveReport(tx: Transaction, { envelope, examined }: ExaminedMessage): Promise<void> {
    const { report } = examined.parsed
    if (report?.kind !== 'feedback') return
    const { outgoing, returnPaths } = this.#deps
    const addresses = [report.original_mail_from, report.returned.return_path]
    const seq = addresses.map((address) => returnPaths.read(tagOf(address))).find((one) => one !== undefined)
    const queuedEmail = seq === undefined ? undefined : await outgoing.queuedEmail(seq, tx)
    if (!queuedEmail) return
    const outcome = await this.#complained(tx, queuedEmail, report)
    this.#note(tx, outcome, envelope, queuedEmail)
  }

  async #returned(tx: Transaction, queuedEmail: QueuedEmail, report: DeliveryReport): Promise<Outcome> {
    const { status, address } = queuedEmail.recipient
    const entries = entriesFor(report, address)
    const failed = entries.filter(({ action }) => action === 'failed')
    const [first] = failed
    if (first)
      return this.#bounced(
        tx,
        queuedEmail,
        replyOf(first, report),
        entries.length === failed.length && failed.every(isUnknownRecipient),
      )
    // while the box is still trying, a report on an unknown attempt changes nothing
    if (status !== 'sent' && status !== 'delivered') return 'idle'
    const delayed = entries.find(({ action }) => action === 'delayed')
    const [arrived] = entries
    if (delayed) return this.#noteReport(tx, queuedEmail, replyOf(delayed, report), 'delayed')
    if (!arrived || status === 'delivered') return 'idle'
    if (entries.some(({ action }) => action === 'relayed'))
      return this.#noteReport(tx, queuedEmail, replyOf(arrived, report), 'relayed')
    return this.#delivered(tx, queuedEmail, replyOf(arrived, report))
  }

  async #bounced(tx: Transaction, queuedEmail: QueuedEmail, reply: ReportedReply, hard: boolean): Promise<Outcome> {
    const { outgoing, suppressions, clock, queue } = this.#deps
    const { recipient, account_id } = queuedEmail
    const { seq, email_id, address: email, delivery_id } = recipient
    if (['bounced', 'failed', 'cancelled'].includes(recipient.status)) return 'idle'
    const change = { ...reply, status: 'bounced', bounced_at: iso(clock.now()), next_attempt_at: null } as const
    const delivery = await outgoing.updateDelivery(tx, seq, change)
    if (delivery_id !== null) await queue.abandon(tx, delivery_id)
    if (hard) await suppressions.add(tx, account_id, { email, reason: reply.response, source: 'bounce', email_id })
    const annotation = hard && (await outgoing.isExternalRecipient(tx, queuedEmail.recipient)) ? 'nobody' : null
    if (delivery) await outgoing.appendEvent(tx, emailBounced, email_id, { delivery }, annotation)
    return 'bounced'
  }

  async #delivered(tx: Transaction, { recipient }: QueuedEmail, reply: ReportedReply): Promise<Outcome> {
    const { outgoing, clock } = this.#deps
    const change = { ...reply, status: 'delivered', delivered_at: iso(clock.now()) } as const
    const delivery = await outgoing.updateDelivery(tx, recipient.seq, change)
    if (delivery) await outgoing.appendEvent(tx, emailDelivered, recipient.email_id, { delivery })
    return 'delivered'
  }

  async #noteReport(tx: Transaction, { recipient }: QueuedEmail, reply: ReportedReply, outcome: Outcome): Promise<Outcome> {
    await this.#deps.outgoing.updateDelivery(tx, recipient.seq, reply)
    return outcome
  }

  async #complained(tx: Transaction, queuedEmail: QueuedEmail, report: FeedbackReport): Promise<Outcome> {
    const { outgoing, suppressions, clock } = this.#deps
    const { recipient, account_id } = queuedEmail
    if (!isComplaint(report) || recipient.complained_at !== null) return 'idle'
    const delivery = await outgoing.updateDelivery(tx, recipient.seq, { complained_at: iso(clock.now()) })
    const { email_id, address: email } = recipient
    const reason = `${report.feedback_type}, reported by ${report.reporter ?? 'the receiver'}`
    await suppressions.add(tx, account_id, { email, reason, source: 'complaint', email_id })
    const annotation = (await outgoing.isExternalRecipient(tx, queuedEmail.recipient)) ? 'outside' : null
    if (delivery) await outgoing.appendEvent(tx, emailComplained, email_id, { delivery }, annotation)
    return 'complained'
  }

  /** Writes the log line of a returned message, with the message it is about. */
  #note(
    tx: Transaction,
    outcome: Outcome,
    { session, remote_address: ip }: Envelope,
    queuedEmail: QueuedEmail | undefined,
    report: DeliveryReport | null = null,
  ): void {
    const { email, recipient } = queuedEmail ?? {}
    const [reply] = report && recipient ? entriesFor(report, recipient.address) : []
    const line = {
      session,
      ip,
      email_id: email?.id ?? null,
      message_id: email?.message_id ?? null,
      delivery_id: recipient?.delivery_id ?? null,
      from: email?.from_address,
      to: recipient && loggable(recipient.address, 320),
      ...(reply && report ? repliedIn(reply, report) : {}),
      outcome,
    }
    tx.afterCommit(() => {
      this.#counter.labels(outcome).inc()
      this.#deps.log.info(line, 'bounce or report received')
    })
  }
}

function repliedIn(reply: ReportedRecipient, report: DeliveryReport): object {
  const { smtp_code: code, enhanced_code, response } = replyOf(reply, report)
  return { code, enhanced_code, reply: loggable(response, 512) }
}

/** The fields of a delivery that a report sets. */
interface ReportedReply {
  smtp_code: number | null
  enhanced_code: string | null
  response: string
}

function replyOf({ smtp_code, status, diagnostic, action }: ReportedRecipient, { reporter }: DeliveryReport): ReportedReply {
  const by = reporter === null ? '' : ` (reported by ${reporter})`
  return { smtp_code, enhanced_code: status, response: `${diagnostic ?? `${action}, without a reason`}${by}` }
}

function isUnknownRecipient({ smtp_code, status, diagnostic }: ReportedRecipient): boolean {
  return isHard({ smtp_code, enhanced_code: status, response: diagnostic })
}

/** The entries of a report for the recipient, or all when it names only others: then the address was forwarded to them. */
function entriesFor({ recipients }: DeliveryReport, address: string): ReportedRecipient[] {
  const own = recipients.filter(({ original_recipient: original, final_recipient: final }) => {
    return [original, final].some((one) => one !== null && sameMailbox(one, address))
  })
  return own.length > 0 ? own : recipients
}

/** RFC 5965 3.1: a type that is not known is `other`. Some types do not mean unwanted mail. */
function isComplaint({ feedback_type }: FeedbackReport): boolean {
  return !/^(?:not-spam|auth-failure|dmarc|dkim)/.test(feedback_type)
}

/** The token in a return path of ours. */
function tagOf(address: string | null): string {
  const [local = ''] = (address ?? '').toLowerCase().split('@')
  const plus = local.indexOf('+')
  return plus > 0 && isReturnPath(local.slice(0, plus)) ? local.slice(plus + 1) : ''
}
