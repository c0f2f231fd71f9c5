import type { Queue } from '../../queue/queue.ts'
import type { Basis, Module } from '../../module.ts'
import { Backlog } from './backlog.ts'
import { statusMetrics } from './metrics.ts'
import { routes } from './routes.ts'
import type { Reloaded } from './model.ts'
import { BoxState } from './state.ts'

interface Deps extends Basis {
  queue: Queue
  failing: () => Promise<string[]>
  reread: () => Promise<Reloaded>
}

/** Status of the whole box, for the operator. */
export function statusModule(deps: Deps): Module {
  statusMetrics(deps)
  const backlog = new Backlog(deps)
  const state = new BoxState({ ...deps, backlog, directory: deps.config.data_dir })
  return { name: 'operation', routes: routes({ backlog, state, reread: deps.reread }) }
}
