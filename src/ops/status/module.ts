import type { Config } from '../../config.ts'
import type { Clock } from '../../core/clock.ts'
import type { Cursors } from '../../store/page.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Queue } from '../../queue/queue.ts'
import type { Module } from '../../module.ts'
import type { Database } from '../../store/database.ts'
import type { Space } from '../../store/space.ts'
import { Backlog } from './backlog.ts'
import { statusMetrics } from './metrics.ts'
import { routes } from './routes.ts'
import type { Reloaded } from './model.ts'
import { BoxState } from './state.ts'

interface Deps {
  config: Config
  database: Database
  clock: Clock
  cursors: Cursors
  queue: Queue
  space: Space
  version: string
  failing: () => Promise<string[]>
  reread: () => Promise<Reloaded>
  metrics: Metrics
}

/** Status of the whole box, for the operator. */
export function statusModule(deps: Deps): Module {
  statusMetrics(deps)
  const backlog = new Backlog(deps)
  const state = new BoxState({ ...deps, backlog, directory: deps.config.data_dir })
  return { name: 'operation', routes: routes({ backlog, state, reread: deps.reread }) }
}
