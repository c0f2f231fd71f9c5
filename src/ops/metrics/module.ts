import type { CronJob } from '../../core/cron.ts'
import type { EventLog } from '../../events/log.ts'
import { type AnyRoute, routeOf } from '../../http/route.ts'
import type { ModuleBasis, Module } from '../../module.ts'
import type { Received } from './counters.ts'
import { Minutes } from './minutes.ts'
import { seriesOf } from './series.ts'
import { Stats, StatsFilter } from './model.ts'

interface Deps extends ModuleBasis {
  /** The counters of the SMTP receiver since the start; undefined before. */
  received: () => Received | undefined
}

export class MetricsModule implements Module {
  readonly name = 'figures'
  readonly routes: AnyRoute[]
  readonly jobs: CronJob[]
  readonly #minutes: Minutes
  readonly #events: EventLog
  #deaf: (() => void) | undefined

  constructor(deps: Deps) {
    this.#minutes = new Minutes({ ...deps, directory: deps.config.data_dir })
    this.#events = deps.events
    const { database, clock } = deps
    const stats = routeOf('Operation')('GET', '/stats', {
      scope: 'account:read',
      operator: true,
      summary: 'Get the activity of the box',
      description:
        'Counts of mail, events, webhooks, calls, the queue and the disk for each minute of a week; at most a day (1440) of minutes, or a week of hours, ' +
        'in one call. The first step contains `from`. Work is counted in the minute in which it ended.',
      query: StatsFilter,
      reply: Stats,
      handle: ({ query }) => seriesOf(database, clock, query),
    })
    this.routes = [stats]
    this.jobs = [{ name: 'note-figures', schedule: '* * * * *', run: () => this.#minutes.noteLast() }]
  }

  async start(): Promise<void> {
    this.#deaf = this.#events.subscribe(() => this.#minutes.happened())
  }

  async stop(): Promise<void> {
    if (!this.#deaf) return
    this.#deaf()
    this.#deaf = undefined
    await this.#minutes.noteThis()
  }
}
