import { performance } from 'node:perf_hooks'
import type { Basis } from '../basis.ts'
import type { Clock } from '../core/clock.ts'
import type { Counter, Histogram } from '../core/metrics.ts'
import { sql } from '../store/database.ts'
import { type ClaimedDelivery, maxAttempts } from './in-flight.ts'
import type { Result } from './queue-store.ts'

interface Deps extends Pick<Basis, 'metrics' | 'database' | 'clock'> {
  /** The kinds that have a courier. */
  kinds: () => Iterable<string>
  /** Running attempts of one kind. */
  underWay: (kind: string) => number
}

/** Timeout of the query over the whole queue, in milliseconds. */
const timeout = 5000

/** Buckets in seconds, up to the five days of the mail schedule. */
const ages = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400, 43_200, 86_400, 432_000]

interface Depth {
  kind: string
  waiting: number
  oldest: string
  /** Null if all wait because their accounts are stopped. */
  due: string | null
}

/** Metrics of the queue: its depth, the age of deliveries, and results of attempts. */
export class QueueMetrics {
  readonly #clock: Clock
  readonly #attempts: Counter<'kind' | 'outcome'>
  readonly #times: Histogram<'kind'>
  readonly #ages: Histogram<'kind'>

  constructor({ metrics, database, clock, kinds, underWay }: Deps) {
    this.#clock = clock
    this.#attempts = metrics.counter('pillarbox_delivery_attempts_total', 'Delivery attempts', ['kind', 'outcome'])
    this.#times = metrics.histogram('pillarbox_delivery_attempt_seconds', 'Duration of delivery attempts in seconds', ['kind'])
    this.#ages = metrics.histogram(
      'pillarbox_delivery_age_seconds',
      'Seconds from queueing a delivery to its end, including the waits between attempts',
      ['kind'],
      ages,
    )
    const query = async (): Promise<Map<string, Depth>> => {
      const depths = await database.slow<Depth>(
        sql`SELECT kind, count(*) AS waiting, min(created_at) AS oldest,
          min(due_at) FILTER (WHERE account_id NOT IN (SELECT account_id FROM stopped_accounts)) AS due FROM deliveries_queue
          WHERE state = 'waiting' GROUP BY kind`,
        timeout,
      )
      return new Map(depths.map((depth) => [depth.kind, depth]))
    }
    // gauges that are read at the same time share one query
    let pending: Promise<Map<string, Depth>> | undefined
    const shared = (): Promise<Map<string, Depth>> => (pending ??= query().finally(() => (pending = undefined)))
    metrics.gauge(
      'pillarbox_deliveries',
      'Waiting and running deliveries, by kind: email, webhook, …',
      async (gauge) => {
        const found = await shared()
        for (const kind of kinds()) {
          gauge.labels(kind, 'waiting').set(found.get(kind)?.waiting ?? 0)
          gauge.labels(kind, 'under_way').set(underWay(kind))
        }
      },
      ['kind', 'state'],
    )
    metrics.gauge(
      'pillarbox_deliveries_oldest_seconds',
      'Age of the oldest waiting delivery; 0 if there is none',
      async (gauge) => {
        const found = await shared()
        for (const kind of kinds()) gauge.labels(kind).set(this.#since(found.get(kind)?.oldest))
      },
      ['kind'],
    )
    metrics.gauge(
      'pillarbox_deliveries_overdue_seconds',
      'Delay of the next due attempt of this kind; 0 if none is due. Above 0 the queue is behind or at its limit',
      async (gauge) => {
        const found = await shared()
        for (const kind of kinds()) gauge.labels(kind).set(this.#since(found.get(kind)?.due))
      },
      ['kind'],
    )
    metrics.gauge('pillarbox_delivery_attempts_limit', 'Maximum number of running attempts of all kinds', (gauge) =>
      gauge.set(maxAttempts),
    )
  }

  /** Called when an attempt begins; returns what to call when it ends. */
  begin({ kind }: ClaimedDelivery): () => void {
    const began = performance.now()
    return () => this.#times.labels(kind).observe((performance.now() - began) / 1000)
  }

  /** Called when the result of an attempt is on disk. */
  ended({ kind, created_at }: ClaimedDelivery, { outcome }: Result): void {
    this.#attempts.labels(kind, outcome).inc()
    if (outcome === 'done') this.#ages.labels(kind).observe(this.#since(created_at))
  }

  #since(at: string | null | undefined): number {
    return at === undefined || at === null ? 0 : Math.max(0, this.#clock.now() - Date.parse(at)) / 1000
  }
}
