import type { Config } from './config.ts'
import type { Clock } from './core/clock.ts'
import type { CronJob } from './core/cron.ts'
import type { Log } from './core/log.ts'
import type { Metrics } from './core/metrics.ts'
import type { Seal, SealedColumn } from './core/seal/seal.ts'
import type { Courier } from './queue/courier.ts'
import type { EventTypes } from './events/catalogue.ts'
import type { EventLog } from './events/log.ts'
import type { EventType } from './events/model.ts'
import type { AnyRoute } from './http/route.ts'
import type { Site } from './http/types.ts'
import type { Database } from './store/database.ts'
import type { Cursors } from './store/page.ts'
import type { Space } from './store/space.ts'
import type { Upgrade } from './http/server/upgrades.ts'

/** What all modules are made from. */
export interface Basis {
  config: Config
  log: Log
  clock: Clock
  seal: Seal
  database: Database
  space: Space
  metrics: Metrics
  events: EventLog
  cursors: Cursors
  types: EventTypes
  /** The account of the operator. */
  account: string
  publicUrl: () => string
  version: string
}

/** A module of the app. Modules are started in order and stopped in reverse order. */
export interface Module {
  name: string
  routes?: AnyRoute[]
  /** Paths whose requests become WebSockets. */
  upgrades?: Upgrade[]
  /** The web interface; one module at most has one. */
  site?: Site
  events?: EventType[]
  jobs?: CronJob[]
  /** The couriers of the deliveries that this module enqueues. */
  couriers?: Courier[]
  /** The columns that are sealed under the master key. */
  sealed?: SealedColumn[]
  start?(): Promise<void>
  /** Finishes running work and takes no more. */
  stop?(): Promise<void>
  /** Applies changed settings that need no restart. */
  reload?(config: Config): Promise<void> | void
}
