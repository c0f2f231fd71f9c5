import type { Basis } from '../basis.ts'
import { hour, iso, minute } from '../core/clock.ts'
import { type IdentityRow, present } from '../identities/row.ts'
import { loggable } from '../core/log.ts'
import {
  type Courier,
  type AttemptResult,
  TemporaryFailure,
  type AttemptNotes,
  type Outcome,
  PermanentFailure,
} from '../queue/courier.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { smsDelivered, type SmsError, smsFailed, smsSent } from './model.ts'
import { hasOptedOut, noteInput } from './opt-outs.ts'
import { Busy, Lost, Rejected, type SmsProvider, type Taken, toTemporaryFailure } from './provider.ts'
import { type SmsRow, emitSms } from './rows.ts'

/** The kind of these deliveries in the queue; the lane is the provider and the number. */
export const smsKind = 'sms'

/** The answer of an attempt while the identity is suspended. */
export const suspended = 'the identity that sent it is suspended'

export interface SmsLoad {
  sms_id: string
}

interface Deps extends Pick<Basis, 'log' | 'database' | 'events' | 'clock'> {
  provider: SmsProvider | undefined
}

/** The stored result of an attempt: the queue's answer. */
type SmsSendResult = { taken: Taken } | { error: SmsError; opted_out?: true } | { lost: string }

/** Sends messages through the provider. After a lost answer it retries only where that cannot send the message twice. */
export class SmsCourier implements Courier<SmsLoad, SmsSendResult> {
  readonly kind = smsKind
  readonly stops = true
  readonly schedule = [0, 15_000, minute, 5 * minute, 15 * minute, hour, 2 * hour, 4 * hour]
  readonly jitter = 0.1
  readonly #deps: Deps
  /** Messages that the provider may have, as an attempt that is not recorded yet has handed them over. */
  readonly #handedOver = new Set<string>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** An attempt that was started and has no stored end was interrupted: its result is unknown. */
  async begin(tx: Transaction, { sms_id }: SmsLoad): Promise<void> {
    await tx.run(sql`UPDATE sms SET lost = CASE attempting WHEN 1 THEN 1 ELSE lost END, attempting = 1 WHERE id = ${sms_id}`)
  }

  async deliver({ sms_id }: SmsLoad, _attempt: number, signal: AbortSignal, noted: AttemptNotes): Promise<SmsSendResult> {
    const { database, provider } = this.#deps
    const row = await database.get<SmsRow>(sql`SELECT * FROM sms WHERE id = ${sms_id}`)
    if (row?.status !== 'queued') throw new PermanentFailure('')
    Object.assign(noted, { from: row.sender, to: row.recipient, provider: row.provider })
    if (provider?.name !== row.provider) throw refused('provider_not_configured', `${row.provider} is no longer configured`)
    if (row.lost === 1 && !provider.idempotent) throw lost('the box stopped before the response was received')
    await this.#requireWanted(row)
    signal.throwIfAborted()
    this.#handedOver.add(sms_id)
    try {
      const { id, sender: from, recipient: to, body } = row
      return { taken: await provider.send({ id, from, to, body }, signal) }
    } catch (error) {
      if (error instanceof Rejected) throw refused(error.code, error.message, error.optedOut)
      if (error instanceof Busy) throw toTemporaryFailure(error)
      // covers unforeseen errors too: the provider may have accepted the message
      if (!provider.idempotent && !signal.aborted) throw lost(error instanceof Error ? error.message : 'it failed')
      throw error instanceof Lost ? new TemporaryFailure(error.message) : error
    }
  }

  /** The next attempt need not fear that the provider has a message that was not handed over. */
  async interrupted(tx: Transaction, { sms_id }: SmsLoad): Promise<void> {
    if (!this.#handedOver.has(sms_id)) await tx.run(sql`UPDATE sms SET attempting = 0 WHERE id = ${sms_id}`)
  }

  async settle(tx: Transaction, { sms_id }: SmsLoad, outcome: Outcome, answer: SmsSendResult | string): Promise<void> {
    const { events, clock } = this.#deps
    const row = await tx.get<SmsRow>(sql`UPDATE sms SET attempting = 0, lost = 0 WHERE id = ${sms_id} RETURNING *`)
    if (outcome === 'deferred' || row?.status !== 'queued') {
      // a callback arrived before our own record, which lacks the provider's message id
      const early = outcome === 'done' ? resultOf(answer) : undefined
      if (row && early && 'taken' in early) {
        await tx.run(sql`UPDATE sms SET provider_id = coalesce(provider_id, ${early.taken.provider_id}) WHERE id = ${sms_id}`)
      }
      return
    }
    const now = iso(clock.now())
    const said = resultOf(answer)
    if ('lost' in said) {
      const error = JSON.stringify({ code: 'answer_lost', message: said.lost } satisfies SmsError)
      await tx.run(sql`UPDATE sms SET status = 'unknown', error = ${error} WHERE id = ${sms_id}`)
      return
    }
    if ('error' in said) {
      const after = await tx.get<SmsRow>(
        sql`UPDATE sms SET status = 'failed', error = ${JSON.stringify(said.error)} WHERE id = ${sms_id} RETURNING *`,
      )
      if (said.opted_out) await noteInput(tx, 'stop', row.sender, row.recipient, now)
      return emitSms(tx, events, smsFailed, after!)
    }
    const { provider_id, status = 'sent', segments = row.segments } = said.taken
    const sent = await tx.get<SmsRow>(
      sql`UPDATE sms SET status = 'sent', sent_at = ${now}, provider_id = ${provider_id}, segments = ${segments} WHERE id = ${sms_id} RETURNING *`,
    )
    await emitSms(tx, events, smsSent, sent!)
    if (status === 'sent') return
    const there = await tx.get<SmsRow>(
      sql`UPDATE sms SET status = 'delivered', delivered_at = ${now} WHERE id = ${sms_id} RETURNING *`,
    )
    await emitSms(tx, events, smsDelivered, there!)
  }

  finished({ id: queue_id, load, attempt, outcome, answer, next, ms, notes }: AttemptResult<SmsLoad, SmsSendResult>): void {
    const { sms_id } = load
    this.#handedOver.delete(sms_id)
    const result = statusOf(outcome, answer)
    const end = { reply: loggable(sentenceOf(resultOf(answer)), 512), attempt, result, next_attempt_at: next ?? null, ms }
    if (result === 'failed' || result === 'unknown') this.#deps.log.warn({ queue_id, sms_id, ...notes, ...end }, 'SMS failed')
    else this.#deps.log.info({ queue_id, sms_id, ...notes, ...end }, 'SMS attempt')
  }

  async describe(reader: Reader, { sms_id }: SmsLoad): Promise<Record<string, string>> {
    const row = await reader.get<SmsRow>(sql`SELECT * FROM sms WHERE id = ${sms_id}`)
    return row ? { sms_id, from: row.sender, to: row.recipient } : { sms_id }
  }

  answerText(answer: string): string {
    return sentenceOf(readResult(answer))
  }

  async cancel(tx: Transaction, { sms_id }: SmsLoad, message: string): Promise<void> {
    const error = JSON.stringify({ code: 'cancelled', message } satisfies SmsError)
    const row = await tx.get<SmsRow>(
      sql`UPDATE sms SET status = 'failed', error = ${error} WHERE id = ${sms_id} AND status = 'queued' RETURNING *`,
    )
    if (row) await emitSms(tx, this.#deps.events, smsFailed, row)
  }

  /** A message may have waited for hours: the rules for new messages apply again. */
  async #requireWanted({ identity_id, sender, recipient }: SmsRow): Promise<void> {
    const { database, clock } = this.#deps
    const row = await database.get<Pick<IdentityRow, 'status' | 'expires_at'>>(
      sql`SELECT identities.status, identities.expires_at FROM phone_numbers JOIN identities ON identities.id = phone_numbers.identity_id
        WHERE phone_numbers.number = ${sender} AND phone_numbers.identity_id = ${identity_id} AND phone_numbers.status = 'active'`,
    )
    const holder = present(row, clock)
    if (!holder || holder.status === 'deleted') {
      throw refused('number_given_back', `${sender} was released before the message could be sent.`)
    }
    if (await hasOptedOut(database, sender, recipient)) {
      throw refused('recipient_opted_out', `${recipient} opted out of this number (STOP) before the message could be sent.`)
    }
    if (holder.status === 'suspended') throw new TemporaryFailure(suspended)
  }
}

function refused(code: string, message: string, optedOut = false): PermanentFailure {
  return new PermanentFailure({ error: { code, message }, ...(optedOut ? { opted_out: true } : {}) } satisfies SmsSendResult)
}

function lost(message: string): PermanentFailure {
  return new PermanentFailure({ lost: message } satisfies SmsSendResult)
}

/**
 * The status after an attempt; unknown when the answer was lost. A sentence of the queue's own, as after the last attempt, is an error like
 * any other.
 */
function statusOf(outcome: Outcome | 'interrupted', answer: SmsSendResult | string): string {
  if (outcome === 'interrupted' || outcome === 'deferred') return outcome
  // cancelled before it was sent
  if (answer === '') return 'cancelled'
  const said = resultOf(answer)
  if ('taken' in said) return said.taken.status ?? 'sent'
  return 'lost' in said ? 'unknown' : 'failed'
}

/** The result of an attempt; a message of the queue itself is an error. */
function resultOf(answer: SmsSendResult | string): SmsSendResult {
  return typeof answer === 'string' ? { error: { code: 'gave_up', message: answer } } : answer
}

/** Parses a stored result. */
function readResult(stored: string): SmsSendResult {
  try {
    return JSON.parse(stored) as SmsSendResult
  } catch {
    return resultOf(stored)
  }
}

function sentenceOf(result: SmsSendResult): string {
  return 'taken' in result ? 'accepted by the provider' : 'error' in result ? result.error.message : result.lost
}
