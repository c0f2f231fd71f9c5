import type { Config } from './config.ts'
import type { CronJob } from './core/cron.ts'
import type { SealedColumn } from './core/seal/seal.ts'
import type { Courier } from './queue/courier.ts'
import type { EventType } from './events/model.ts'
import type { AnyRoute } from './http/route.ts'
import type { Site } from './http/types.ts'
import type { Upgrade } from './http/server/upgrades.ts'

/** A capability, as the app sees it. Started in order, stopped in the reverse order. */
export interface Module {
  name: string
  routes?: AnyRoute[]
  /** Paths whose requests become WebSockets. */
  upgrades?: Upgrade[]
  /** Pages for people; one part at most has them. */
  site?: Site
  events?: EventType[]
  jobs?: CronJob[]
  /** Who carries what this part puts into the queue. */
  couriers?: Courier[]
  /** What of its tables is sealed under the master key. */
  sealed?: SealedColumn[]
  start?(): Promise<void>
  /** Finishes the work in hand, takes no more. */
  stop?(): Promise<void>
  /** Takes over changed settings that need no restart. */
  reload?(config: Config): Promise<void> | void
}
