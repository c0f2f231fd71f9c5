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
    'Always 1; which version of the box runs, and on which of Node',
    (gauge) => gauge.labels(version, process.version).set(1),
    ['version', 'node'],
  )
  metrics.gauge(
    'pillarbox_failing',
    '1 for what of the box does not work now, as /readyz says: http, smtp, space (the disk is short of room: nothing new is taken), store (nothing can be written)',
    async (gauge) => {
      const bad = await failing()
      for (const what of able) gauge.labels(what).set(bad.includes(what) ? 1 : 0)
    },
    ['what'],
  )
}
