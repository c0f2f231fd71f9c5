import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Gauge, Histogram } from 'prom-client'

/** Durations in seconds, from a cached read to a long wait. */
const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]

const sums = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** The box's figures, in Prometheus' text form. One registry per box: two boxes in one process do not mix. */
export class Metrics {
  readonly #registry = new Registry()
  readonly #unread = this.counter(
    'pillarbox_figures_unread_total',
    'Figures that could not be read when they were asked for: they were left out of that answer',
    ['name'],
  )

  /** Adds the process' own figures: memory, CPU, event loop, garbage collection. */
  collectProcess(): void {
    collectDefaultMetrics({ register: this.#registry })
    // sums of what is there by kind, under names that only counters should have
    for (const sum of sums) this.#registry.removeSingleMetric(sum)
  }

  counter<Label extends string = never>(name: string, help: string, labels: readonly Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames: [...labels], registers: [this.#registry] })
  }

  /** Buckets are seconds unless given. */
  histogram<Label extends string = never>(
    name: string,
    help: string,
    labels: readonly Label[] = [],
    buckets: readonly number[] = seconds,
  ): Histogram<Label> {
    return new Histogram({ name, help, labelNames: [...labels], buckets: [...buckets], registers: [this.#registry] })
  }

  /** A figure read only when somebody asks: `collect` sets it. One that cannot be read is left out, and keeps nobody from the others. */
  gauge<Label extends string = never>(
    name: string,
    help: string,
    collect: (gauge: Gauge<Label>) => void | Promise<void>,
    labels: readonly Label[] = [],
  ): Gauge<Label> {
    const unread = this.#unread
    unread.labels(name).inc(0)
    return new Gauge<Label>({
      name,
      help,
      labelNames: [...labels],
      registers: [this.#registry],
      async collect() {
        try {
          await collect(this)
        } catch {
          // with labels it then has no values, without them none that could be taken for one
          this.reset()
          if (labels.length === 0) this.remove()
          unread.labels(name).inc()
        }
      },
    })
  }

  /** The sum of what a counter or gauge says now under the labels that are asked for. Throws when there is none of this name. */
  async total(name: string, asked: (labels: Partial<Record<string, string | number>>) => boolean): Promise<number> {
    const metric = this.#registry.getSingleMetric(name)
    if (!metric) throw new Error(`There is no metric ${name}.`)
    const { values } = await metric.get()
    return values.filter(({ labels }) => asked(labels)).reduce((sum, { value }) => sum + value, 0)
  }

  /** A count that somebody else keeps, read only when somebody asks: `read` answers each, as it is now, with its labels. */
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

  /** Every figure, as declared. */
  get declared(): { name: string; help: string; labels: string[] }[] {
    return this.#registry.getMetricsAsArray().map((metric) => {
      const { name, help, labelNames = [] } = metric as unknown as { name: string; help: string; labelNames?: string[] }
      return { name, help, labels: [...labelNames] }
    })
  }

  text(): Promise<string> {
    return this.#registry.metrics()
  }

  get contentType(): string {
    return this.#registry.contentType
  }
}
