import type { Metrics } from '../core/metrics.ts'
import type { Module } from '../module.ts'
import type { Jobs } from './jobs.ts'
import { routes } from './routes.ts'

/** Stopped before the modules that its work uses: the last module. */
export function jobsModule(jobs: Jobs, metrics: Metrics): Module {
  metrics.gauge(
    'pillarbox_jobs',
    'Running jobs, such as exports and imports',
    (gauge) => {
      gauge.reset()
      for (const [kind, count] of jobs.counts) gauge.labels(kind).set(count)
    },
    ['kind'],
  )
  return {
    name: 'jobs',
    routes: routes(jobs),
    jobs: [{ name: 'sweep-jobs', schedule: '41 * * * *', run: (signal) => jobs.sweep(signal) }],
    start: () => jobs.beginAgain(),
    get work() {
      return jobs.work
    },
    stop: () => jobs.stop(),
  }
}
