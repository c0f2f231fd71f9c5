import { performance } from 'node:perf_hooks'
import type { Log } from '../../core/log.ts'
import type { Counter, Histogram, Metrics } from '../../core/metrics.ts'
import type { Cut } from './call-abort.ts'

/** The log line of a request: never its query, body or key. */
interface Entry {
  request_id: string
  method: string
  /** The path template of the route, so that metrics stay bounded and no signed URL is logged. */
  route: string
  status: number
  /** The start, by `performance.now()`. */
  began: number
  key_id: string | null
  session_id: string | null
  address: string
  cut: Cut | undefined
  /** What a protocol adds: the tool that was called. */
  more?: Readonly<Record<string, unknown>> | undefined
}

/** A reverse proxy asks every other second. */
const probes = new Set(['/healthz', '/readyz'])

const methods = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PUT'])

/** Writes a line and two metrics for every request. */
export class AccessLog {
  readonly #log: Log
  readonly #requests: Counter<'route' | 'method' | 'status'>
  readonly #durations: Histogram<'route' | 'method'>

  constructor(log: Log, metrics: Metrics) {
    // these lines hold no secrets, and redaction would cost more than the line
    this.#log = log.child({}, { redact: [] })
    this.#requests = metrics.counter('http_requests_total', 'Requests answered, by route.', ['route', 'method', 'status'])
    this.#durations = metrics.histogram('http_request_duration_seconds', 'Seconds from request to response, by route.', [
      'route',
      'method',
    ])
  }

  note({ began, cut, more, ...entry }: Entry): void {
    const milliseconds = performance.now() - began
    const method = methods.has(entry.method) ? entry.method : 'other'
    this.#requests.inc({ route: entry.route, method, status: entry.status })
    this.#durations.observe({ route: entry.route, method }, milliseconds / 1000)
    const line = { ...entry, duration_ms: Math.round(milliseconds * 10) / 10, ...more, ...(cut ? { cut } : {}) }
    if (probes.has(entry.route) && entry.status < 400) this.#log.debug(line, 'request')
    else this.#log.info(line, 'request')
  }
}
