import type { Keys } from '../accounts/keys.ts'
import type { Plan } from '../accounts/plan.ts'
import type { Config } from '../config.ts'
import type { CronJob } from '../core/cron.ts'
import type { Courier } from '../queue/courier.ts'
import { Outside, type OutsideSettings } from '../net/outside.ts'
import type { Queue } from '../queue/queue.ts'
import { resolver } from '../net/resolve.ts'
import type { AnyRoute } from '../http/route.ts'
import type { ModuleBasis, Module } from '../module.ts'
import { sql } from '../store/database.ts'
import { pendingEventIds, WebhookDeliveries } from './deliveries.ts'
import { WebhookCourier } from './courier.ts'
import { EventNames } from './event-names.ts'
import { Fanout } from './fanout.ts'
import { webhookDisabled, webhookTest } from './model.ts'
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
export class WebhooksModule implements Module {
  readonly name = 'webhooks'
  readonly events = [webhookDisabled, webhookTest]
  readonly sealed = sealedTexts
  readonly routes: AnyRoute[]
  readonly couriers: Courier[]
  readonly jobs: CronJob[]
  readonly #fanout: Fanout
  readonly #outside: Outside

  constructor(deps: Deps) {
    this.#outside = new Outside(outsideSettings(deps.config))
    const common = { ...deps, names: new EventNames(deps.types), outside: this.#outside, sealed: new Sealed(deps.seal) }
    const webhooks = new Webhooks(common)
    this.routes = routes(webhooks, new WebhookDeliveries(common))
    this.jobs = [{ name: 'end-webhooks', schedule: '* * * * *', run: () => webhooks.sweep() }]
    this.couriers = [new WebhookCourier(common)]
    deps.events.onPrune(() => pendingEventIds(deps.database))
    this.#fanout = new Fanout(common)
    deps.metrics.gauge(
      'pillarbox_webhooks',
      'Webhooks by state: well, failing (the last finished attempt failed), off (disabled by their owner, or after failures)',
      async (gauge) => {
        const count = sql`SELECT count(*) AS count, active, failing_since IS NOT NULL AS failing FROM webhooks GROUP BY 2, 3`
        const rows = await deps.database.all<{ count: number; active: number; failing: number }>(count)
        const sum = (of: (row: { active: number; failing: number }) => boolean): number =>
          rows.filter(of).reduce((total, row) => total + row.count, 0)
        gauge.labels('well').set(sum(({ active, failing }) => active === 1 && failing === 0))
        gauge.labels('failing').set(sum(({ active, failing }) => active === 1 && failing === 1))
        gauge.labels('off').set(sum(({ active }) => active === 0))
      },
      ['state'],
    )
  }

  async start(): Promise<void> {
    this.#fanout.start()
  }

  get work(): Promise<void> | undefined {
    return this.#fanout.work
  }

  async stop(): Promise<void> {
    await this.#fanout.stop()
    await this.#outside.close()
  }

  reload(config: Config): void {
    this.#outside.reload(outsideSettings(config))
  }
}

function outsideSettings({ webhooks, dns }: Config): OutsideSettings {
  return { ...webhooks, resolve: resolver(dns) }
}
