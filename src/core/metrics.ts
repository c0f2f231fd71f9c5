import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Gauge, Histogram } from 'prom-client'

/** Durations in seconds, from a cached read to a long wait. */
const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]

const sums = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/**
 * Of memory, CPU, event loop and garbage collection: one for all boxes of a process, as prom-client never stops to watch these once it has begun.
 * It wakes the process a hundred times a second, so that a box begins when its metrics are read for the first time.
 */
let processRegistry: Registry | undefined

function watchProcess(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // gauges with the suffix of counters, which repeat others by kind
  for (const sum of sums) registry.removeSingleMetric(sum)
  return registry
}

/** The metrics of the box in the Prometheus text format. Each box has a registry of its own, as tests run several in one process. */
export class Metrics {
  readonly #registry = new Registry()
  #withProcess = false
  readonly #failures = this.counter(
    'pillarbox_figures_unread_total',
    'Metrics that could not be read and were left out of a response',
    ['name'],
  )

  /** Adds metrics of the process: memory, and from the first reading on CPU, event loop and garbage collection. */
  collectProcess(): void {
    this.#withProcess = true
  }

  counter<Label extends string = never>(name: string, help: string, labels: readonly Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames: [...labels], registers: [this.#registry] })
  }

  /** Buckets are in seconds by default. */
  histogram<Label extends string = never>(
    name: string,
    help: string,
    labels: readonly Label[] = [],
    buckets: readonly number[] = seconds,
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames: [...labels], buckets: [...buckets], registers: [this.#registry] })
  }

  /** A gauge that `collect` sets when metrics are read. When that fails, the gauge is left out and the others are still read. */
  gauge<Label extends string = never>(
    name: string,
    help: string,
    collect: (gauge: Gauge<Label>) => void | Promise<void>,
    labels: readonly Label[] = [],
  ): Gauge<Label> {
    const failures = this.#failures
    failures.labels(name).inc(0)
    return new Gauge<Label>({
      name,
      help,
      labelNames: [...labels],
      registers: [this.#registry],
      async collect() {
        try {
          await collect(this)
        } catch {
          // with labels the gauge then has no values; without labels it must be removed, or it would read as 0
          this.reset()
          if (labels.length === 0) this.remove()
          failures.labels(name).inc()
        }
      },
    })
  }

  /** The sum of a counter or gauge over the label sets that the predicate selects. Throws when there is no metric of this name. */
  async total(name: string, matches: (labels: Partial<Record<string, string | number>>) => boolean): Promise<number> {
    const metric = this.#registry.getSingleMetric(name)
    if (!metric) throw new Error(`There is no metric ${name}.`)
    const { values } = await metric.get()
    return values.filter(({ labels }) => matches(labels)).reduce((sum, { value }) => sum + value, 0)
  }

  /** A counter that is kept elsewhere and read when metrics are read: `read` returns each count with its labels. */
  counted<Label extends string = never>(
    name: string,
    help: string,
    read: () => Iterable<[labels: Record<Label, string>, count: number]>,
    labels: readonly Label[] = [],
  ): void {
    const counter: Counter<Label> = new Counter<Label>({
      name,
      help,
      labelNames: [...labels],
      registers: [this.#registry],
      collect() {
        counter.reset()
        for (const [values, count] of read()) counter.inc(values, count)
      },
    })
  }

  /** All metrics, as declared. */
  get declared(): { name: string; help: string; labels: string[] }[] {
    return this.#registries
      .flatMap((registry) => registry.getMetricsAsArray())
      .map((metric) => {
        const { name, help, labelNames = [] } = metric as unknown as { name: string; help: string; labelNames?: string[] }
        return { name, help, labels: [...labelNames] }
      })
  }

  async text(): Promise<string> {
    const texts = await Promise.all(this.#registries.map((registry) => registry.metrics()))
    return texts.join('\n')
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  get #registries(): Registry[] {
    return [this.#registry, ...(this.#withProcess ? [(processRegistry ??= watchProcess())] : [])]
  }
}
