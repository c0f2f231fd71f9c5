import type { Metrics } from '../../core/metrics.ts'

interface Deps {
  metrics: Metrics
  version: string
  /** The components that are failing. */
  failing: () => Promise<string[]>
}

const able = ['http', 'smtp', 'space', 'store']

/** Metrics of versions and health. */
export function statusMetrics({ metrics, version, failing }: Deps): void {
  metrics.gauge(
    'pillarbox_info',
    'Always 1; version of the box and of Node.js',
    (gauge) => gauge.labels(version, process.version).set(1),
    ['version', 'node'],
  )
  metrics.gauge(
    'pillarbox_failing',
    '1 for each failing module, as in /readyz: http, smtp, space (too little free disk space: new data is rejected), store (nothing can be written)',
    async (gauge) => {
      const bad = await failing()
      for (const what of able) gauge.labels(what).set(bad.includes(what) ? 1 : 0)
    },
    ['what'],
  )
}
