import { type Clock, iso } from '../../core/clock.ts'
import type { Outcome } from '../../queue/courier.ts'
import { attemptsOf } from '../../queue/history.ts'
import type { RecipientRow } from '../../mail/deliveries.ts'
import type { Delivery } from '../../mail/model.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
import type { Transaction } from '../../store/database.ts'
import { emailBounced, emailDeferred, emailDelivered, emailFailed, emailSent } from '../model.ts'
import type { Suppressions } from '../suppressions.ts'
import type { CourierAnswer } from './undelivered.ts'

interface Deps {
  clock: Clock
  outgoing: OutgoingEmails
  suppressions: Suppressions
}

/** When the sender hears once more that a message is late, in milliseconds after the first attempt. */
const late = 4 * 60 * 60_000

const events = { delivered: emailDelivered, sent: emailSent, bounced: emailBounced, failed: emailFailed } as const

/** Writes down what became of an attempt: the recipient's status, the event, and whom the account writes to no more. */
export class Outcomes {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** `answer` is what the courier told the queue, or a sentence of the queue's own. */
  async note(tx: Transaction, seq: number, outcome: Outcome, answer: string, next: string | undefined): Promise<void> {
    const { outgoing, clock, suppressions } = this.#deps
    const before = await outgoing.recipient(seq, tx)
    if (!before) return
    const said = readAnswer(answer)
    const status = statusOf(outcome, said)
    const now = iso(clock.now())
    const delivery = await outgoing.updateDelivery(tx, before, {
      status,
      smtp_code: said.smtp_code,
      enhanced_code: said.enhanced_code,
      response: said.response,
      mx: said.mx,
      tls: said.tls,
      next_attempt_at: next ?? null,
      ...(status === 'delivered' ? { delivered_at: now } : {}),
      ...(status === 'bounced' ? { bounced_at: now } : {}),
    })
    // after a bounce there is nothing more to tell
    if (!delivery || before.status === 'bounced') return
    const hard = said.hard === true
    await this.#tell(tx, before, status, delivery, hard)
    const queuedEmail = status === 'bounced' && hard ? await outgoing.queuedEmail(seq, tx) : undefined
    if (queuedEmail) {
      const { email, recipient, account_id } = queuedEmail
      const reason = said.response
      await suppressions.add(tx, account_id, { email: recipient.address, reason, source: 'bounce', email_id: email.id })
    }
  }

  async #tell(
    tx: Transaction,
    recipient: RecipientRow,
    status: RecipientRow['status'],
    delivery: Delivery,
    hard: boolean,
  ): Promise<void> {
    const { outgoing } = this.#deps
    const { email_id } = recipient
    if (status === 'deferred') {
      if (await this.#isNews(tx, recipient)) await outgoing.appendEvent(tx, emailDeferred, email_id, { delivery })
    } else if (status in events) {
      const told = status === 'bounced' ? hard : status !== 'failed'
      const outside = told && (await outgoing.isExternalRecipient(tx, recipient))
      const remark = outside ? (status === 'bounced' ? 'nobody' : 'outside') : null
      await outgoing.appendEvent(tx, events[status as keyof typeof events], email_id, { delivery }, remark)
    }
  }

  /** Whether a deferral is the first one, or the first after four hours. */
  async #isNews(tx: Transaction, { delivery_id }: RecipientRow): Promise<boolean> {
    if (delivery_id === null) return false
    const attempts = (await attemptsOf(tx, [delivery_id])).get(delivery_id) ?? []
    const deferrals = attempts.filter(({ outcome }) => outcome === 'deferred')
    if (deferrals.length <= 1) return true
    const begun = Date.parse(attempts[0]!.started_at)
    const after = deferrals.filter(({ ended_at }) => Date.parse(ended_at!) - begun >= late)
    return after.length === 1 && after[0] === deferrals.at(-1)
  }
}

/** What became of the recipient. */
export function statusOf(
  outcome: Outcome,
  said: CourierAnswer,
): 'delivered' | 'sent' | 'deferred' | 'bounced' | 'failed' | 'cancelled' {
  if (outcome === 'done') return said.outcome === 'sent' ? 'sent' : 'delivered'
  if (outcome === 'deferred') return 'deferred'
  if (said.cancelled) return 'cancelled'
  // what was only put off, and has no attempt left, is given up by us
  return said.outcome === 'bounced' ? 'bounced' : 'failed'
}

/** What the courier told the queue, or a sentence of the queue's own. */
export function readAnswer(answer: string): CourierAnswer {
  try {
    return JSON.parse(answer) as CourierAnswer
  } catch {
    return { outcome: 'deferred', smtp_code: null, enhanced_code: null, response: answer, mx: null, tls: null }
  }
}
