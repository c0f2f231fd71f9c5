import type { Basis } from './basis.ts'
import type { Config } from './config.ts'
import type { CronJob } from './core/cron.ts'
import type { SealedColumn } from './core/seal/seal.ts'
import type { Courier } from './queue/courier.ts'
import type { EventType } from './events/model.ts'
import type { ProtocolEndpoint } from './http/protocol.ts'
import type { AnyRoute } from './http/route.ts'
import type { Site } from './http/types.ts'
import type { Upgrade } from './http/server/upgrades.ts'

/** What all modules are made from. */
export interface ModuleBasis extends Basis {
  config: Config
}

/** A module of the app. Modules are started in order and stopped in reverse order. */
export interface Module {
  name: string
  routes?: AnyRoute[]
  /** Paths that speak protocols of their own over HTTP. */
  endpoints?: ProtocolEndpoint[]
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
  /** Loads what commands need of a box that is opened for them and not started. */
  attend?(): Promise<void>
  /** Resolves when the background work that runs now has ended; undefined when there is none. */
  readonly work?: Promise<unknown> | undefined
  /** Finishes running work and takes no more. */
  stop?(): Promise<void>
  /** Applies changed settings that need no restart. */
  reload?(config: Config): Promise<void> | void
  /** Called when settings were to be reloaded and cannot be used: what they say in `section` is not known. Returns what follows from that, for people. */
  refuseReload?(isUnknown: (section: keyof Config) => boolean): string | undefined
}
