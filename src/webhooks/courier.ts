import type { Basis } from '../basis.ts'
import { day, hour, iso, minute, second } from '../core/clock.ts'
import { conflict } from '../core/fault.ts'
import { type Log, loggable } from '../core/log.ts'
import type { Counter } from '../core/metrics.ts'
import { upToJsonBytes } from '../core/text.ts'
import { AnswerStorage, type StorageCounter } from '../queue/answer-storage.ts'
import { retryAfter } from '../queue/backoff.ts'
import {
  type Courier,
  type AttemptResult,
  TemporaryFailure,
  type AttemptNotes,
  type Outcome,
  PermanentFailure,
  readStoredAnswer,
} from '../queue/courier.ts'
import { outcomes } from '../queue/history.ts'
import { WorkLimiter } from '../net/work-limiter.ts'
import { type Outside, type OutsideAnswer, Unreachable } from '../net/outside.ts'
import { isOfLiving } from '../identities/row.ts'
import { join, type Reader, sql, type Transaction } from '../store/database.ts'
import { EventBodies } from './event-bodies.ts'
import type { EventNames } from './event-names.ts'
import { SecretCache } from './secret-cache.ts'
import { disable, kind, listening, type WebhookLoad, type WebhookRow } from './row.ts'
import { type Sealed, signatureHeaders } from './signature.ts'

interface Deps extends Pick<Basis, 'log' | 'metrics' | 'database' | 'events' | 'clock' | 'version'> {
  names: EventNames
  outside: Outside
  sealed: Sealed
  plan: StorageCounter
}

/** The stored result of an attempt: the queue's answer. */
interface AttemptAnswer {
  status: number | null
  body: string | null
  error: string | null
}

const timeout = 15 * second

/** A webhook is disabled after this many milliseconds of failures only. */
const failureLimit = 5 * day

/** Bytes of an event from which it counts among the large ones. */
const large = 64 * 1024

/** Attempts with a large event at once, as each has it in memory until the endpoint has answered. */
const largeAttempts = { all: 64, one: 8 }

/** Why nothing was posted, which says nothing about the endpoint. */
const notPosted = {
  gone: 'the event is no longer in the log',
  disabled: 'the webhook is disabled',
  unwanted: 'the webhook does not receive this event any more, as its events or identity_id were changed',
}

/** The fields of a webhook that an attempt needs. */
type Addressee = Pick<
  WebhookRow,
  'id' | 'url' | 'events' | 'scopes' | 'identity_id' | 'headers' | 'secret' | 'previous_secret' | 'previous_expires_at'
>

/** Signs an event and posts it: 2xx is success, a redirect is a failure, 410 disables the webhook. */
export class WebhookCourier implements Courier<WebhookLoad, AttemptAnswer> {
  readonly kind = kind
  readonly stops = true
  readonly schedule = [0, 5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, day]
  readonly jitter = 0.1
  readonly #deps: Deps
  readonly #log: Log
  readonly #answers: Counter<'answer'>
  readonly #stored: AnswerStorage
  readonly #bodies: EventBodies
  readonly #opened: SecretCache
  /** The URL that an attempt posted to, by its load. */
  readonly #postedTo = new WeakMap<WebhookLoad, string>()
  readonly #largeAttempts = new WorkLimiter({ concurrent: largeAttempts, large })
  /** Every webhook with `failing_since` that this box set or found at its start, and possibly more; with its latest failure, counted over all. */
  #failing: Map<string, number> | undefined
  #failures = 0

  constructor(deps: Deps) {
    this.#deps = deps
    // these lines hold no secrets, and redaction would cost more than the line
    this.#log = deps.log.child({}, { redact: [] })
    this.#answers = deps.metrics.counter(
      'pillarbox_webhook_answers_total',
      'Responses of endpoints: 2xx, 3xx, 4xx, 5xx, or none within the timeout',
      ['answer'],
    )
    this.#bodies = new EventBodies(deps.events)
    this.#stored = new AnswerStorage(deps.plan)
    deps.events.onErasure((tx, ids) => this.#removeBodies(tx, ids))
    this.#opened = new SecretCache(deps.sealed)
  }

  async deliver(load: WebhookLoad, _attempt: number, signal: AbortSignal, noted: AttemptNotes): Promise<AttemptAnswer> {
    const size = await this.#bodies.sizeOf(load.event_id)
    if (size === undefined) throw new PermanentFailure(answerWith({ error: notPosted.gone }))
    const share = this.#largeAttempts.share(size.account_id)
    share.reserve(size.octets)
    try {
      return await share.run(signal, () => this.#post(load, size.octets >= large, signal, noted))
    } finally {
      share.release()
    }
  }

  async #post(load: WebhookLoad, isLarge: boolean, signal: AbortSignal, noted: AttemptNotes): Promise<AttemptAnswer> {
    const { database, names, outside, clock } = this.#deps
    const body = await this.#bodies.get(load.event_id, isLarge)
    if (body === undefined) throw new PermanentFailure(answerWith({ error: notPosted.gone }))
    Object.assign(noted, body.subject)
    // read last, so that a webhook disabled, deleted or changed meanwhile gets nothing that it must not
    const webhook = await database.get<Addressee>(
      sql`SELECT id, url, events, scopes, identity_id, headers, secret, previous_secret, previous_expires_at FROM webhooks
        WHERE id = ${load.webhook_id} AND ${listening(clock.now())}
        AND (identity_id IS NULL OR ${isOfLiving(sql`identity_id`, iso(clock.now()))})`,
    )
    if (!webhook) throw new PermanentFailure(answerWith({ error: notPosted.disabled }))
    if (!names.sentTo(webhook, body.event)) throw new PermanentFailure(answerWith({ error: notPosted.unwanted }))
    noted['host'] = new URL(webhook.url).host
    this.#postedTo.set(load, webhook.url)
    let answer: OutsideAnswer
    try {
      answer = await outside.post(webhook.url, {
        headers: this.#headers(webhook, load, body.octets),
        body: body.octets,
        deadline: timeout,
        signal,
      })
    } catch (error) {
      if (error instanceof Unreachable) this.#answers.labels('none').inc()
      if (error instanceof Unreachable) throw new TemporaryFailure(answerWith({ error: error.message }))
      throw error
    }
    this.#answers.labels(`${Math.floor(answer.status / 100)}xx`).inc()
    const posted = answerWith({ status: answer.status, body: upToJsonBytes(answer.body, longestBody) })
    if (answer.status >= 200 && answer.status < 300) return posted
    if (answer.status === 410) throw new PermanentFailure(posted)
    throw new TemporaryFailure(posted, retryAfter([answer.headers['retry-after']].flat()[0], clock.now()))
  }

  /** Measures how long attempts have only failed, and disables the webhook. */
  async settle(tx: Transaction, load: WebhookLoad, outcome: Outcome, answer: AttemptAnswer | string): Promise<void> {
    const { database, events, clock } = this.#deps
    const failing = (this.#failing ??= await this.#failingWebhooks())
    const { webhook_id, event_id } = load
    // its data was removed during the attempt
    if (answerOf(answer).body && (await events.isErased(tx, event_id))) await this.#removeBodies(tx, [event_id])
    if (outcome === 'done') {
      const newest = failing.get(webhook_id)
      // the common case, which must be cheap; of several boxes, others may have seen a failure
      if (newest === undefined && !database.run.shared) return
      await tx.run(sql`UPDATE webhooks SET failing_since = NULL WHERE id = ${webhook_id} AND failing_since IS NOT NULL`)
      tx.afterCommit(() => {
        if (failing.get(webhook_id) === newest) failing.delete(webhook_id)
      })
      return
    }
    if (Object.values(notPosted).includes(answerOf(answer).error ?? '')) return
    this.#failures += 1
    failing.set(webhook_id, this.#failures)
    const webhook = await tx.get<WebhookRow>(sql`SELECT * FROM webhooks WHERE id = ${load.webhook_id}`)
    // what the former URL answers says nothing about the present one
    if (webhook?.active !== 1 || webhook.url !== (this.#postedTo.get(load) ?? webhook.url)) return
    const now = iso(clock.now())
    // a time after now is of a clock that was ahead
    const failing_since = webhook.failing_since !== null && webhook.failing_since < now ? webhook.failing_since : now
    if (webhook.failing_since !== failing_since) {
      await tx.run(sql`UPDATE webhooks SET failing_since = ${failing_since} WHERE id = ${webhook.id}`)
    }
    const after = { ...webhook, failing_since }
    if (answerOf(answer).status === 410) await disable(tx, events, clock.now(), after, 'gone')
    else if (clock.now() - Date.parse(failing_since) >= failureLimit) {
      await disable(tx, events, clock.now(), after, 'failing')
    }
  }

  finished({ id: queue_id, load, attempt, outcome, answer, next, ms, notes }: AttemptResult<WebhookLoad, AttemptAnswer>): void {
    const { webhook_id, event_id, event } = load
    const { status: code, error } = answerOf(answer)
    const end = { code, error: error === null ? null : loggable(error, 512), attempt, result: outcomes[outcome] }
    const line = { queue_id, webhook_id, event_id, event, ...notes, ...end, next_attempt_at: next ?? null, ms }
    if (outcome === 'failed') this.#log.warn(line, 'webhook delivery failed')
    else this.#log.info(line, 'webhook attempt')
  }

  async describe(reader: Reader, { webhook_id, event_id, event }: WebhookLoad): Promise<Record<string, string>> {
    const webhook = await reader.get<{ url: string }>(sql`SELECT url FROM webhooks WHERE id = ${webhook_id}`)
    return { webhook_id, event_id, event, ...(webhook ? { host: new URL(webhook.url).host } : {}) }
  }

  answerText(answer: string): string {
    const { status, error } = readAnswer(answer)
    return error ?? `it answered ${status}`
  }

  /** Not a failure of the endpoint. */
  async cancel(): Promise<void> {}

  async retry(tx: Transaction, { webhook_id }: WebhookLoad): Promise<void> {
    const webhook = await tx.get(sql`SELECT 1 FROM webhooks WHERE id = ${webhook_id} AND ${listening(this.#deps.clock.now())}`)
    if (!webhook) throw conflict('The webhook is disabled or deleted.', { code: 'webhook_inactive' })
  }

  /** Removes the bodies of the answers to events, which may repeat what was posted. */
  #removeBodies(tx: Transaction, eventIds: readonly string[]): Promise<void> {
    return this.#stored.removeBodies(tx, sql`kind = 'webhook' AND json_extract(load, '$.event_id') IN (${join([...eventIds])})`)
  }

  // only committed state: a change that is rolled back must not hide a failure
  async #failingWebhooks(): Promise<Map<string, number>> {
    const rows = await this.#deps.database.all<{ id: string }>(sql`SELECT id FROM webhooks WHERE failing_since IS NOT NULL`)
    return new Map(rows.map(({ id }) => [id, 0]))
  }

  #headers(webhook: Addressee, load: WebhookLoad, body: Buffer): Record<string, string> {
    const { clock, version } = this.#deps
    const { previous_expires_at } = webhook
    const { headers, key, previous } = this.#opened.of(webhook)
    const former = previous_expires_at !== null && previous_expires_at > iso(clock.now()) ? previous : null
    return {
      ...headers,
      'Content-Type': 'application/json',
      'User-Agent': `Pillarbox/${version}`,
      ...signatureHeaders({ id: load.event_id, timestamp: Math.floor(clock.now() / 1000), body }, key, former),
    }
  }
}

/** The answer of the endpoint; a message of the queue itself is the error of an attempt that got none. */
function answerOf(answer: AttemptAnswer | string): AttemptAnswer {
  return typeof answer === 'string' ? answerWith({ error: answer }) : answer
}

export function readAnswer(stored: string | null): AttemptAnswer {
  return stored === null ? answerWith({}) : answerOf(readStoredAnswer(stored) as AttemptAnswer | string)
}

/** The most bytes of JSON of a stored body, without its quotes: control characters take six each. */
const longestBody = 2046

function answerWith(part: Partial<AttemptAnswer>): AttemptAnswer {
  return { status: null, body: null, error: null, ...part }
}
