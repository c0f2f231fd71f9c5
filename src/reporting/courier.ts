import type { Basis } from '../basis.ts'
import { day, iso, minute } from '../core/clock.ts'
import type { Counter } from '../core/metrics.ts'
import { type Courier, TemporaryFailure, type Outcome, PermanentFailure } from '../queue/courier.ts'
import type { Outside } from '../net/outside.ts'
import type { SystemMailResult, SystemMail } from '../outbound/transport/outbound-transport.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import type { ReportSubject } from './days.ts'

export interface ReportLoad extends ReportSubject {
  /** The id of its row in outbound_report_messages. */
  id: string
  from: string
  to: string
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log' | 'metrics'> {
  outside: Outside
  transmit: (mail: SystemMail, signal: AbortSignal) => Promise<SystemMailResult>
}

/** How long a destination that refused a report gets none, in milliseconds. */
const pause = 14 * day

const posting = minute

/** Sends reports, with retries for about a day: by mail, or by HTTPS (RFC 8460 3). */
export class ReportCourier implements Courier<ReportLoad> {
  readonly kind = 'report'
  readonly schedule = [0, 5, 15, 60, 240, 480, 600].map((minutes) => minutes * minute)
  readonly jitter = 0.2
  readonly slowAfter = 30_000
  /** Outside domains choose the destinations: slow ones must not take connections from mail. */
  readonly limits = { healthy: 4, busy: 4, slow: 1, in_all: 16 }
  readonly #deps: Deps
  readonly #sent: Counter<'kind' | 'result'>

  constructor(deps: Deps) {
    this.#deps = deps
    this.#sent = deps.metrics.counter(
      'pillarbox_reports_sent_total',
      'Reports to other domains by kind (dmarc, tls) and result, once for each destination: sent, failed',
      ['kind', 'result'],
    )
    for (const kind of ['dmarc', 'tls']) for (const result of ['sent', 'failed']) this.#sent.labels(kind, result).inc(0)
  }

  async deliver(load: ReportLoad, _attempt: number, signal: AbortSignal): Promise<string> {
    const { database, log } = this.#deps
    const row = await database.get<{ content: Uint8Array }>(
      sql`SELECT content FROM outbound_report_messages WHERE id = ${load.id}`,
    )
    if (!row) throw new PermanentFailure('the report no longer exists')
    const octets = Buffer.from(row.content)
    const answer = load.to.startsWith('https://')
      ? await this.#post(load, octets, signal)
      : await this.#mail(load, octets, signal)
    const { kind, domain, day: of, to } = load
    log.info({ kind, domain, day: of, to, answer }, 'report sent')
    return answer
  }

  async settle(tx: Transaction, { id, kind, domain, to }: ReportLoad, outcome: Outcome, answer: string): Promise<void> {
    if (outcome === 'deferred') return
    await tx.run(sql`DELETE FROM outbound_report_messages WHERE id = ${id}`)
    this.#sent.labels(kind, outcome === 'done' ? 'sent' : 'failed').inc()
    if (outcome === 'done') return
    const { clock, log } = this.#deps
    const until = iso(clock.now() + pause)
    await tx.run(
      sql`INSERT INTO outbound_report_refusals (destination, until) VALUES (${to}, ${until})
        ON CONFLICT (destination) DO UPDATE SET until = excluded.until`,
    )
    log.warn({ kind, domain, to, answer, until }, 'report could not be delivered; no other is sent to its destination until then')
  }

  /** A drop by the operator does not indicate a fault of the destination. */
  async cancel(tx: Transaction, { id }: ReportLoad): Promise<void> {
    await tx.run(sql`DELETE FROM outbound_report_messages WHERE id = ${id}`)
  }

  async describe(_reader: Reader, { kind, domain, day: of, from, to }: ReportLoad): Promise<Record<string, string>> {
    return { report: kind, domain, day: of, from, to }
  }

  async #mail({ kind, from, to }: ReportLoad, octets: Buffer, signal: AbortSignal): Promise<string> {
    // TLS failures must not block reports on them (RFC 8460 3)
    const { outcome, response, mx } = await this.#deps.transmit({ from, to, raw: octets, despite_tls: kind === 'tls' }, signal)
    const answer = mx === null ? response : `${mx}: ${response}`
    if (outcome === 'delivered') return answer
    throw outcome === 'refused' ? new PermanentFailure(answer) : new TemporaryFailure(answer)
  }

  async #post({ to }: ReportLoad, body: Buffer, signal: AbortSignal): Promise<string> {
    const headers = { 'content-type': 'application/tlsrpt+gzip' }
    const { status } = await this.#deps.outside.post(to, { headers, body, deadline: posting, signal }).catch((error: unknown) => {
      if (signal.aborted) throw error
      throw new TemporaryFailure(error instanceof Error ? error.message : 'it could not be reached')
    })
    const answer = `it answered ${status}`
    if (status >= 200 && status < 300) return answer
    throw status >= 400 && status < 500 && status !== 408 && status !== 429
      ? new PermanentFailure(answer)
      : new TemporaryFailure(answer)
  }
}
