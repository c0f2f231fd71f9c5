import { route } from '../http/route.ts'
import type { AnyRoute } from '../http/route.ts'
import { Stats, StatsFilter } from './model.ts'
import type { Series } from './series.ts'

export function routes(series: Series): AnyRoute[] {
  return [
    route({
      method: 'GET',
      path: '/stats',
      scope: 'account:read',
      operator: true,
      tag: 'Operation',
      summary: 'Get what went on',
      description:
        'Mail, events, webhooks, calls, the queue and the disk, minute by minute for a week; at most a day (1440) of minutes, or a week of hours, ' +
        'at once. The step that holds `from` is the first. What went on is counted in the minute in which it ended.',
      query: StatsFilter,
      reply: Stats,
      handle: ({ query }) => series.of(query),
    }),
  ]
}
