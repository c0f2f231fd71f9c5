import { type Clock, hour, iso } from '../../core/clock.ts'
import { type Outcome, readStoredAnswer } from '../../queue/courier.ts'
import { attemptsOf } from '../../queue/history.ts'
import type { RecipientRow } from '../../mail/deliveries.ts'
import type { Delivery } from '../../mail/model.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
import type { Transaction } from '../../store/database.ts'
import { emailBounced, emailDeferred, emailDelivered, emailFailed, emailSent } from '../model.ts'
import type { Suppressions } from '../suppressions.ts'
import type { TransportAnswer } from './undelivered.ts'

interface Deps {
  clock: Clock
  outgoing: OutgoingEmails
  suppressions: Suppressions
}

/** Milliseconds after the first attempt at which a second `email.deferred` is raised. */
const secondNotice = 4 * hour

const events = { delivered: emailDelivered, sent: emailSent, bounced: emailBounced, failed: emailFailed } as const

/** Records the result of an attempt: the status of the recipient, the event, and a suppression after a hard bounce. */
export class Outcomes {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async note(tx: Transaction, seq: number, outcome: Outcome, reply: TransportAnswer, next: string | undefined): Promise<void> {
    const { outgoing, clock, suppressions } = this.#deps
    const before = await outgoing.recipient(seq, tx)
    if (!before) return
    const status = statusOf(outcome, reply)
    const now = iso(clock.now())
    const delivery = await outgoing.updateDelivery(tx, before, {
      status,
      smtp_code: reply.smtp_code,
      enhanced_code: reply.enhanced_code,
      response: reply.response,
      mx: reply.mx,
      tls: reply.tls,
      next_attempt_at: next ?? null,
      suspended: reply.suspended === true ? 1 : 0,
      ...(status === 'delivered' ? { delivered_at: now } : {}),
      ...(status === 'bounced' ? { bounced_at: now } : {}),
    })
    // after a bounce no further event is raised
    if (!delivery || before.status === 'bounced') return
    const hard = reply.hard === true
    await this.#raiseEvent(tx, before, status, delivery, hard)
    const queuedEmail = status === 'bounced' && hard ? await outgoing.queuedEmail(seq, tx) : undefined
    if (queuedEmail) {
      const { email, recipient, account_id } = queuedEmail
      const reason = reply.response
      await suppressions.add(tx, account_id, { email: recipient.address, reason, source: 'bounce', email_id: email.id })
    }
  }

  async #raiseEvent(
    tx: Transaction,
    recipient: RecipientRow,
    status: RecipientRow['status'],
    delivery: Delivery,
    hard: boolean,
  ): Promise<void> {
    const { outgoing } = this.#deps
    const { email_id } = recipient
    if (status === 'deferred') {
      if (await this.#isReportable(tx, recipient)) await outgoing.appendEvent(tx, emailDeferred, email_id, { delivery })
    } else if (status in events) {
      const counts = status === 'bounced' ? hard : status !== 'failed'
      const outside = counts && (await outgoing.isExternalRecipient(tx, recipient))
      const annotation = outside ? (status === 'bounced' ? 'nobody' : 'outside') : null
      await outgoing.appendEvent(tx, events[status as keyof typeof events], email_id, { delivery }, annotation)
    }
  }

  /** True if a deferral is the first one, or the first after four hours. */
  async #isReportable(tx: Transaction, { delivery_id }: RecipientRow): Promise<boolean> {
    if (delivery_id === null) return false
    const attempts = (await attemptsOf(tx, [delivery_id])).get(delivery_id) ?? []
    const deferrals = attempts.filter(({ outcome }) => outcome === 'deferred')
    if (deferrals.length <= 1) return true
    const begun = Date.parse(attempts[0]!.started_at)
    const after = deferrals.filter(({ ended_at }) => Date.parse(ended_at!) - begun >= secondNotice)
    return after.length === 1 && after[0] === deferrals.at(-1)
  }
}

/** The outcome for the recipient. */
export function statusOf(
  outcome: Outcome,
  reply: TransportAnswer,
): 'delivered' | 'sent' | 'deferred' | 'bounced' | 'failed' | 'cancelled' {
  if (outcome === 'done') return reply.outcome === 'sent' ? 'sent' : 'delivered'
  if (outcome === 'deferred') return 'deferred'
  if (reply.cancelled) return 'cancelled'
  // a deferred delivery without attempts left has failed on our side
  return reply.outcome === 'bounced' ? 'bounced' : 'failed'
}

/** The answer of the courier; a message of the queue itself becomes the response. */
export function answerOf(answer: TransportAnswer | string): TransportAnswer {
  if (typeof answer !== 'string') return answer
  return { outcome: 'deferred', smtp_code: null, enhanced_code: null, response: answer, mx: null, tls: null }
}

/** The same of a stored answer. */
export function readAnswer(stored: string): TransportAnswer {
  return answerOf(readStoredAnswer(stored) as TransportAnswer | string)
}
