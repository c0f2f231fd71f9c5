import type { Counter, Histogram, Metrics } from '../core/metrics.ts'
import type { CheckResults } from './delivery-target.ts'
import type { Receiver } from './receiver.ts'
import type { ListenerMetrics } from './session-log.ts'

type Stats = Partial<Receiver['stats']> & Partial<Record<'logins' | 'failed_logins' | 'blocked_logins', number>>

type ListenerKind = 'smtp' | 'submission'

/** Statistics of the listeners for incoming mail and for submission, and their limits. */
interface ListenerStats extends Record<ListenerKind, () => Stats | undefined> {
  limits: () => { connections: number; octets: number }
}

/** Enhanced codes of RFC 3463. Any other is counted by its class alone, so that label values stay few. */
const enhanced = /^([245]\.\d\.\d{1,2}) /

/** Metrics of incoming mail. Counts that the receivers keep are read from them. */
export class MailMetrics {
  readonly #listeners: ListenerStats
  readonly #refusals: Counter<'door' | 'stage' | 'reply' | 'code'>
  readonly #checks: Counter<'check' | 'result'>
  readonly #seconds: Histogram<'door'>
  readonly #tls: Counter<'door' | 'version'>
  readonly #failures: Counter<'door'>

  constructor(metrics: Metrics, listeners: ListenerStats) {
    this.#listeners = listeners
    this.#refusals = metrics.counter(
      'pillarbox_smtp_refusals_total',
      'Rejected connections, senders, recipients and messages, by reply code and enhanced code (RFC 3463)',
      ['door', 'stage', 'reply', 'code'],
    )
    this.#checks = metrics.counter(
      'pillarbox_mail_checks_total',
      'Results of the checks of incoming messages: spf, dmarc, arc and each DKIM signature by result, and spam as yes or no',
      ['check', 'result'],
    )
    this.#seconds = metrics.histogram(
      'pillarbox_smtp_answer_seconds',
      'Seconds from the end of a message to the reply: examined, checked, stored, and flushed to disk',
      ['door'],
    )
    this.#tls = metrics.counter('pillarbox_smtp_tls_sessions_total', 'Sessions with TLS, by TLS version', ['door', 'version'])
    this.#failures = metrics.counter('pillarbox_smtp_tls_failures_total', 'Failed TLS handshakes', ['door'])
    this.#countAll(metrics)
  }

  of(door: ListenerKind): ListenerMetrics {
    this.#failures.labels(door).inc(0)
    return {
      refused: (stage, code, text) =>
        this.#refusals.labels(door, stage, String(code), enhanced.exec(text)?.[1] ?? `${String(code)[0]}.0.0`).inc(),
      checked: (results) => this.#check(results),
      answered: (seconds) => this.#seconds.labels(door).observe(seconds),
      secured: (version) => (version === null ? this.#failures.labels(door).inc() : this.#tls.labels(door, version).inc()),
    }
  }

  #check({ spf, dkim, dmarc, arc, spam }: CheckResults): void {
    const all = { spf, dmarc, arc, spam: spam ? 'yes' : 'no' }
    for (const [check, result] of Object.entries(all)) this.#checks.labels(check, result).inc()
    for (const signature of dkim) this.#checks.labels('dkim', signature.split(' ', 1)[0]!).inc()
  }

  #countAll(metrics: Metrics): void {
    const door = ['door'] as const
    const each = (of: keyof Stats): Iterable<[{ door: ListenerKind }, number]> =>
      this.#open().map(([listener, stats]) => [{ door: listener }, stats[of] ?? 0])
    metrics.counted('pillarbox_smtp_sessions_total', 'Accepted connections', () => each('sessions'), door)
    metrics.counted('pillarbox_smtp_message_bytes_total', 'Bytes of accepted messages', () => each('octets'), door)
    metrics.counted(
      'pillarbox_smtp_messages_total',
      'Completely received messages by result: taken, refused (by a rule), failed (internal error, the client may try again)',
      () =>
        this.#open().flatMap(([listener, { messages = 0, refused_messages = 0, failed_messages = 0 }]) =>
          Object.entries({ taken: messages, refused: refused_messages, failed: failed_messages }).map(
            ([result, count]): [{ door: ListenerKind; result: string }, number] => [{ door: listener, result }, count],
          ),
        ),
      ['door', 'result'],
    )
    metrics.counted(
      'pillarbox_smtp_logins_total',
      'Logins for submission: right, wrong, blocked (not tried, after too many failures from that network)',
      () => {
        const { logins, failed_logins = 0, blocked_logins = 0 } = this.#listeners.submission() ?? {}
        const counts = logins === undefined ? {} : { right: logins, wrong: failed_logins, blocked: blocked_logins }
        return Object.entries(counts).map(([result, count]) => [{ result }, count])
      },
      ['result'],
    )
    metrics.gauge(
      'pillarbox_smtp_connections',
      'Open connections',
      (gauge) => {
        for (const [listener, { connections = 0 }] of this.#open()) gauge.labels(listener).set(connections)
      },
      door,
    )
    metrics.gauge(
      'pillarbox_smtp_connections_limit',
      'Maximum number of connections of each listener (smtp.max_connections)',
      (gauge) => gauge.set(this.#listeners.limits().connections),
    )
    metrics.gauge(
      'pillarbox_smtp_held_limit_bytes',
      'Maximum memory for messages being received above 64 KiB, in bytes (smtp.max_memory)',
      (gauge) => gauge.set(this.#listeners.limits().octets),
    )
    metrics.gauge('pillarbox_smtp_held_bytes', 'Memory of messages being received, in bytes, of all listeners', (gauge) =>
      gauge.set(this.#listeners.smtp()?.octets_held ?? 0),
    )
  }

  #open(): [ListenerKind, Stats][] {
    const found: [ListenerKind, Stats | undefined][] = [
      ['smtp', this.#listeners.smtp()],
      ['submission', this.#listeners.submission()],
    ]
    return found.filter((one): one is [ListenerKind, Stats] => one[1] !== undefined && one[1].sessions !== undefined)
  }
}
