import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Queue } from '../delivery/queue.ts'
import type { Part } from '../part.ts'
import type { Database } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import { Backlog } from './backlog.ts'
import { operationFigures } from './figures.ts'
import { routes } from './routes.ts'
import type { Reloaded } from './model.ts'
import { BoxState } from './state.ts'

interface Needs {
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

/** What the operator sees of the whole box. */
export function operationPart(needs: Needs): Part {
  operationFigures(needs)
  const backlog = new Backlog(needs)
  const state = new BoxState({ ...needs, backlog, directory: needs.config.data_dir })
  return { name: 'operation', routes: routes({ backlog, state, reread: needs.reread }) }
}
