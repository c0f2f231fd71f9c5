import type { Metrics } from '../core/metrics.ts'
import type { EventLog } from './log.ts'
import { endOf } from './positions.ts'

export function eventMetrics(metrics: Metrics, events: EventLog): void {
  const written = metrics.counter('pillarbox_events_total', 'Events written to the log, by type', ['type'])
  events.subscribe(({ type }) => written.labels(type).inc())
  metrics.gauge(
    'pillarbox_follower_behind_events',
    'Number of events that a follower of the log (webhooks, …) is behind; omitted while unknown',
    async (gauge) => {
      const end = await endOf(events)
      gauge.reset()
      for (const { name, position } of events.followers) {
        if (position > 0) gauge.labels(name).set(Math.max(0, end - position))
      }
    },
    ['follower'],
  )
}
