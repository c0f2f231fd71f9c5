import type { Counter, Metrics } from '../../core/metrics.ts'
import type { RateLimitState } from '../rate.ts'

interface Deps {
  metrics: Metrics
  /** Requests that are being answered. */
  underWay: () => number
  /** Calls that wait for the turn of their account. */
  waiting: () => number
}

/** Metrics of errors, rate limits and running calls. */
export class CallMetrics {
  readonly #errors: Counter<'code'>
  readonly #limited: Counter<'policy'>

  constructor({ metrics, underWay, waiting }: Deps) {
    this.#errors = metrics.counter(
      'http_errors_total',
      'Error responses, by code: missing_key, invalid_key, insufficient_scope, rate_limited, storage_full, …',
      ['code'],
    )
    this.#limited = metrics.counter(
      'http_rate_limited_total',
      'Rate-limited calls, by limit: key, session, account, address, document, sign-in, callback',
      ['policy'],
    )
    metrics.gauge('http_requests_under_way', 'Requests in progress, including calls of wait', (gauge) => gauge.set(underWay()))
    metrics.gauge('http_requests_waiting', "Calls queued until their account's turn", (gauge) => gauge.set(waiting()))
  }

  /** Counts an error by its code, and by the rate limit if that refused the call. */
  failed(code: string | undefined, rateLimit: RateLimitState | undefined): void {
    this.#errors.labels(code ?? 'internal_error').inc()
    if (rateLimit && rateLimit.retryAfter > 0) this.#limited.labels(rateLimit.policy).inc()
  }
}

/** Metrics of connections and TLS, below HTTP. */
export class PortMetrics {
  readonly #malformed: Counter<'code'>
  readonly #handshakes: Counter
  readonly #crowded: Counter

  constructor(metrics: Metrics, connections: () => number, limit: () => number) {
    this.#malformed = metrics.counter('http_malformed_total', 'Invalid HTTP requests, by error code', ['code'])
    this.#handshakes = metrics.counter('http_tls_failures_total', 'Failed TLS handshakes of the API')
    this.#crowded = metrics.counter(
      'http_crowded_total',
      'Connections closed because one address had too many (http.max_connections_per_address), or all together (http.max_connections)',
    )
    metrics.gauge('http_connections', 'Open connections of the API, including WebSockets', (gauge) => gauge.set(connections()))
    metrics.gauge(
      'http_connections_limit',
      'Maximum number of connections of each listener of the API, not counting WebSockets (http.max_connections)',
      (gauge) => gauge.set(limit()),
    )
  }

  malformed(code: string): void {
    this.#malformed.labels(code).inc()
  }

  readonly connectionRefused = (): void => this.#crowded.inc()

  readonly tlsFailed = (): void => this.#handshakes.inc()
}
