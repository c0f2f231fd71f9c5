import type { Plan } from '../../accounts/plan.ts'
import type { Config } from '../../config.ts'
import { type CronJob, sweep } from '../../core/cron.ts'
import { Id } from '../../core/shapes.ts'
import { type AnyRoute, routeOf } from '../../http/route.ts'
import type { Identities } from '../../identities/identities.ts'
import { Quota, type QuotaSettings } from '../../mail/quota.ts'
import type { Module, ModuleBasis } from '../../module.ts'
import { agesAt } from '../../store/old-rows.ts'
import { type Clearing, Remains } from './remains.ts'
import { SearchIndex } from './search-index.ts'
import { Trash } from './trash.ts'
import * as z from 'zod'

interface Deps extends ModuleBasis {
  plan: Plan
}

/** Retention: the trash, data of deleted identities, words of deleted mail, the log, and the disk space these release. */
export class RetentionModule implements Module {
  readonly name = 'retention'
  readonly routes: AnyRoute[] = []
  readonly trash: Trash
  readonly quota: Quota
  readonly #deps: Deps
  readonly #remains: Remains
  readonly #searchIndex: SearchIndex
  readonly #stopping = new AbortController()
  #reclaiming: Promise<void> | undefined
  #times: Config['retention']

  constructor(deps: Deps) {
    const { config } = deps
    this.#deps = deps
    this.#times = config.retention
    this.trash = new Trash({ ...deps, time: config.retention.trash })
    this.quota = new Quota({ ...deps, trash: this.trash }, quotaSettings(config))
    this.#remains = new Remains({ ...deps, trash: this.trash })
    this.#searchIndex = new SearchIndex(deps)
  }

  /** Connects identities to their quotas, before `start`. */
  serve(identities: Identities): void {
    identities.onRemove((tx, id) => this.#remains.leave(tx, id))
    this.routes.push(...routes({ identities, trash: this.trash }))
    this.#remains.add((tx, id) => this.#deps.events.clear(tx, id))
    this.#remains.add((tx, id) => identities.clear(tx, id))
  }

  /** Registers further data of an identity, removed with its messages; before `start`. */
  clears(clearing: Clearing): void {
    this.#remains.add(clearing)
  }

  /** Milliseconds that results of deliveries are kept. */
  readonly deliveries = (): number => this.#times.deliveries

  get jobs(): CronJob[] {
    return [
      { name: 'empty-trash', schedule: '7 * * * *', run: (signal) => this.#empty(signal) },
      { name: 'forget-events', schedule: '13 4 * * *', run: (signal) => this.#forget(signal) },
    ]
  }

  /** Returns free space to the disk immediately while it is nearly full, and not only each hour. */
  async start(): Promise<void> {
    this.#deps.space.whileLow(() => void (this.#reclaiming ??= this.#reclaim().finally(() => (this.#reclaiming = undefined))))
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#reclaiming
  }

  reload(config: Config): void {
    this.#times = config.retention
    this.trash.reload(config.retention.trash)
    this.quota.reload(quotaSettings(config))
  }

  async #reclaim(): Promise<void> {
    const { database, log } = this.#deps
    await sweep(() => database.reclaim(), this.#stopping.signal).catch((error: unknown) =>
      log.warn({ err: error }, 'database could not return free space to the disk'),
    )
  }

  async #empty(signal: AbortSignal | undefined): Promise<void> {
    await this.trash.sweep(signal)
    await this.#remains.sweep(signal)
    // the rewritten index takes space before the former gives its own
    if (!this.#deps.space.low()) await this.#searchIndex.sweep(signal)
    // free pages contain what was deleted
    await sweep(() => this.#deps.database.reclaim(), signal)
  }

  async #forget(signal: AbortSignal | undefined): Promise<void> {
    const { events, clock, log } = this.#deps
    const ages = agesAt(clock.now(), this.#times.events)
    const count = await events.prune(ages, signal)
    if (count > 0) log.info({ events: count, before: ages.before }, 'old events deleted')
  }
}

function quotaSettings({ mail }: Config): QuotaSettings {
  return { quota: mail.quota, operator: `postmaster@${mail.domain}` }
}

const Emptied = z
  .object({ id: Id('ident'), purged: z.int().meta({ description: 'number of deleted e-mails and text messages' }) })
  .meta({ id: 'Emptied' })

function routes({ identities, trash }: { identities: Identities; trash: Trash }): AnyRoute[] {
  return [
    routeOf('Identities')('POST', '/identities/:id/trash/empty', {
      scope: 'messages:write',
      // frees space
      stores: false,
      receipt: ['purged'],
      sdk: 'identities.emptyTrash',
      audit: 'trash.emptied',
      summary: 'Empty the trash of an identity',
      description: 'Deletes its e-mails and text messages permanently, and frees their space.',
      reply: Emptied,
      handle: async ({ caller, params }) => {
        const { id } = await identities.row(caller, params.id)
        return { id, purged: await trash.empty(id) }
      },
    }),
  ]
}
