import type { Queue } from '../../queue/queue.ts'
import type { SendingRights } from '../../domains/sending.ts'
import type { Module, ModuleBasis } from '../../module.ts'
import { Backlog } from './backlog.ts'
import { routes } from './routes.ts'
import type { Reloaded } from './model.ts'
import { BoxState } from './state.ts'

interface Deps extends ModuleBasis {
  queue: Queue
  failing: () => Promise<string[]>
  reread: () => Promise<Reloaded>
  sendingRights: () => SendingRights
}

export function statusModule(deps: Deps): Module {
  statusMetrics(deps)
  const backlog = new Backlog(deps)
  const { mail } = deps.config
  const state = new BoxState({ ...deps, backlog, domain: mail.domain })
  return { name: 'operation', routes: routes({ backlog, state, reread: deps.reread }) }
}

const able = ['http', 'smtp', 'space', 'store']

function statusMetrics({ metrics, version, failing }: Deps): void {
  metrics.gauge(
    'pillarbox_info',
    'Always 1; version of the box and of Node.js',
    (gauge) => gauge.labels(version, process.version).set(1),
    ['version', 'node'],
  )
  metrics.gauge(
    'pillarbox_failing',
    '1 for each failing module, as in /readyz: http, smtp, space (too little free disk space: new data is rejected), store (nothing can be written)',
    async (gauge) => {
      const bad = await failing()
      for (const what of able) gauge.labels(what).set(bad.includes(what) ? 1 : 0)
    },
    ['what'],
  )
}
