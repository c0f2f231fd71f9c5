import { routeOf } from '../../http/route.ts'
import type { ModuleBasis, Module } from '../../module.ts'
import type { Received } from './counters.ts'
import { Minutes } from './minutes.ts'
import { seriesOf } from './series.ts'
import { Stats, StatsFilter } from './model.ts'

interface Deps extends ModuleBasis {
  /** The counters of the SMTP receiver since the start; undefined before. */
  received: () => Received | undefined
}

export function metricsModule(deps: Deps): Module {
  const { database, clock, events } = deps
  const minutes = new Minutes(deps)
  let deaf: (() => void) | undefined
  const stats = routeOf('Operation')('GET', '/stats', {
    scope: 'account:read',
    operator: true,
    sdk: 'box.stats',
    summary: 'Get the activity of the box',
    description:
      'Counts of mail, events, webhooks, calls, the queue and the disk for each minute of a week; at most a day (1440) of minutes, or a week of hours, ' +
      'in one call. The first step contains `from`. Work is counted in the minute in which it ended.',
    query: StatsFilter,
    reply: Stats,
    handle: ({ query }) => seriesOf(database, clock, query),
  })
  return {
    name: 'figures',
    routes: [stats],
    jobs: [{ name: 'note-figures', schedule: '* * * * *', everywhere: true, run: () => minutes.noteLast() }],
    start: async () => {
      deaf = events.subscribe(() => minutes.happened())
    },
    stop: async () => {
      if (!deaf) return
      deaf()
      deaf = undefined
      await minutes.noteThis()
    },
  }
}
