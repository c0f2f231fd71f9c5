import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Gauge, Histogram } from 'prom-client'

/** Durations in seconds, from a cached read to a long wait. */
const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]

/** The box's figures, in Prometheus' text form. One registry per box: two boxes in one process do not mix. */
export class Metrics {
  readonly #registry = new Registry()

  /** Adds the process' own figures: memory, CPU, event loop, garbage collection. */
  collectProcess(): void {
    collectDefaultMetrics({ register: this.#registry })
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

  /** A figure read only when somebody asks: `collect` sets it. */
  gauge<Label extends string = never>(
    name: string,
    help: string,
    collect: (gauge: Gauge<Label>) => void | Promise<void>,
    labels: readonly Label[] = [],
  ): Gauge<Label> {
    return new Gauge<Label>({
      name,
      help,
      labelNames: [...labels],
      registers: [this.#registry],
      collect() {
        return collect(this)
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

  text(): Promise<string> {
    return this.#registry.metrics()
  }

  get contentType(): string {
    return this.#registry.contentType
  }
}
