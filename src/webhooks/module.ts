import type { Keys } from '../accounts/keys.ts'
import type { Plan } from '../accounts/plan.ts'
import type { Config } from '../config.ts'
import { Outside, type OutsideSettings } from '../net/outside.ts'
import type { Queue } from '../queue/queue.ts'
import { resolver } from '../net/resolve.ts'
import type { ModuleBasis, Module } from '../module.ts'
import { sql } from '../store/database.ts'
import { pendingEventIds, WebhookDeliveries } from './deliveries.ts'
import { WebhookCourier } from './courier.ts'
import { EventNames } from './event-names.ts'
import { Fanout } from './fanout.ts'
import { webhookCreated, webhookDeleted, webhookDisabled, webhookTest, webhookUpdated } from './model.ts'
import { routes } from './routes.ts'
import { sealedTexts } from './row.ts'
import { Sealed } from './signature.ts'
import { Webhooks } from './webhooks.ts'

interface Deps extends ModuleBasis {
  queue: Queue
  plan: Plan
  keys: Pick<Keys, 'ends' | 'origins'>
}

/** Delivers the events of the log to other servers. */
export function webhooksModule(deps: Deps): Module {
  const outside = new Outside(outsideSettings(deps.config))
  const common = { ...deps, names: new EventNames(deps.types), outside, sealed: new Sealed(deps.seal) }
  const webhooks = new Webhooks(common)
  const fanout = new Fanout(common)
  deps.events.onPrune(() => pendingEventIds(deps.database))
  webhookMetrics(deps)
  return {
    name: 'webhooks',
    events: [webhookCreated, webhookUpdated, webhookDeleted, webhookDisabled, webhookTest],
    sealed: sealedTexts,
    routes: routes(webhooks, new WebhookDeliveries(common)),
    jobs: [{ name: 'end-webhooks', schedule: '* * * * *', run: () => webhooks.sweep() }],
    couriers: [new WebhookCourier(common)],
    get work() {
      return fanout.work
    },
    start: async () => fanout.start(),
    stop: async () => {
      await fanout.stop()
      await outside.close()
    },
    reload: (config) => outside.reload(outsideSettings(config)),
  }
}

function webhookMetrics({ metrics, database }: Deps): void {
  metrics.gauge(
    'pillarbox_webhooks',
    'Webhooks by state: well, failing (the last finished attempt failed), off (disabled by their owner, or after failures)',
    async (gauge) => {
      const count = sql`SELECT count(*) AS count, active, failing_since IS NOT NULL AS failing FROM webhooks GROUP BY 2, 3`
      const rows = await database.all<{ count: number; active: number; failing: number }>(count)
      const sum = (of: (row: { active: number; failing: number }) => boolean): number =>
        rows.filter(of).reduce((total, row) => total + row.count, 0)
      gauge.labels('well').set(sum(({ active, failing }) => active === 1 && failing === 0))
      gauge.labels('failing').set(sum(({ active, failing }) => active === 1 && failing === 1))
      gauge.labels('off').set(sum(({ active }) => active === 0))
    },
    ['state'],
  )
  metrics.gauge('pillarbox_webhook_backlog', 'Events of which deliveries are still to be created', async (gauge) => {
    const row = await database.get<{ count: number }>(sql`SELECT count(*) AS count FROM webhook_backlog`)
    gauge.set(row!.count)
  })
}

function outsideSettings({ webhooks, dns }: Config): OutsideSettings {
  return { ...webhooks, resolve: resolver(dns) }
}
