import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Job } from '../core/cron.ts'
import type { Log } from '../core/log.ts'
import type { Metrics } from '../core/metrics.ts'
import type { EventLog } from '../events/log.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Part } from '../part.ts'
import type { Database } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import type { Received } from './counters.ts'
import { Minutes } from './minutes.ts'
import { routes } from './routes.ts'
import { Series } from './series.ts'

interface Needs {
  config: Config
  database: Database
  events: EventLog
  clock: Clock
  log: Log
  metrics: Metrics
  /** What the receiver of mail has counted since the start; undefined before. */
  received: () => Received | undefined
  space: Space
}

/** What went on in the box, minute by minute, for a week. */
export class FiguresPart implements Part {
  readonly name = 'figures'
  readonly routes: AnyRoute[]
  readonly jobs: Job[]
  readonly #minutes: Minutes
  readonly #events: EventLog
  #deaf: (() => void) | undefined

  constructor(needs: Needs) {
    this.#minutes = new Minutes({ ...needs, directory: needs.config.data_dir })
    this.#events = needs.events
    this.routes = routes(new Series(needs))
    this.jobs = [{ name: 'note-figures', schedule: '* * * * *', run: () => this.#minutes.noteLast() }]
  }

  async start(): Promise<void> {
    this.#deaf = this.#events.tail(() => this.#minutes.happened())
  }

  /** What was counted since the last minute is not lost. */
  async stop(): Promise<void> {
    if (!this.#deaf) return
    this.#deaf()
    this.#deaf = undefined
    await this.#minutes.noteThis()
  }
}
