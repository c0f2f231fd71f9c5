import type { Config } from '../config.ts'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import type { Job } from '../core/cron.ts'
import type { Log } from '../core/log.ts'
import { sweep } from '../core/sweep.ts'
import type { EventLog } from '../events/log.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { Part } from '../part.ts'
import type { Database } from '../store/database.ts'
import type { Space } from '../store/space.ts'
import { Remains } from './remains.ts'
import type { Clearing } from './remains.ts'
import { routes } from './routes.ts'
import { Stores } from './storage.ts'
import type { StorageSettings } from './storage.ts'
import { Trash } from './trash.ts'

interface Needs {
  database: Database
  space: Space
  events: EventLog
  clock: Clock
  log: Log
  config: Config
}

/** How long things are kept: the trash, what deleted identities leave, the log, and the room that all this gives back. */
export class RetentionPart implements Part {
  readonly name = 'retention'
  readonly routes: AnyRoute[] = []
  readonly trash: Trash
  readonly stores: Stores
  readonly #needs: Needs
  readonly #remains: Remains
  readonly #stopping = new AbortController()
  #reclaiming: Promise<void> | undefined
  #times: Config['retention']

  constructor(needs: Needs) {
    const { config } = needs
    this.#needs = needs
    this.#times = config.retention
    this.trash = new Trash({ ...needs, time: config.retention.trash })
    this.stores = new Stores(this.trash, storageSettings(config))
    this.#remains = new Remains({ ...needs, trash: this.trash })
  }

  /** Before `start`: identities know how much they keep, and are known here. */
  serve(identities: Identities): void {
    identities.onRemove((tx, id) => this.#remains.leave(tx, id))
    this.routes.push(...routes({ identities, trash: this.trash }))
    this.#remains.add((tx, id) => this.#needs.events.clear(tx, id))
    this.#remains.add((tx, id) => identities.clear(tx, id))
  }

  /** Before `start`: what else an identity leaves, which goes with its messages. */
  clears(clearing: Clearing): void {
    this.#remains.add(clearing)
  }

  /** Milliseconds that it is kept how deliveries went. */
  readonly deliveries = (): number => this.#times.deliveries

  get jobs(): Job[] {
    return [
      { name: 'empty-trash', schedule: '7 * * * *', run: (signal) => this.#empty(signal) },
      { name: 'forget-events', schedule: '13 4 * * *', run: (signal) => this.#forget(signal) },
      { name: 'reclaim-space', schedule: '33 5 * * *', run: (signal) => sweep(() => this.#needs.database.reclaim(), signal) },
    ]
  }

  /** While the disk is short of room, what was deleted gives its room back at once, and not only at night. */
  async start(): Promise<void> {
    this.#needs.space.whileLow(() => void (this.#reclaiming ??= this.#reclaim().finally(() => (this.#reclaiming = undefined))))
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#reclaiming
  }

  reload(config: Config): void {
    this.#times = config.retention
    this.trash.reload(config.retention.trash)
    this.stores.reload(storageSettings(config))
  }

  async #reclaim(): Promise<void> {
    const { database, log } = this.#needs
    await sweep(() => database.reclaim(), this.#stopping.signal).catch((error: unknown) =>
      log.warn({ err: error }, 'the database could not give room back to the disk'),
    )
  }

  async #empty(signal: AbortSignal | undefined): Promise<void> {
    await this.trash.sweep(signal)
    await this.#remains.sweep(signal)
  }

  async #forget(signal: AbortSignal | undefined): Promise<void> {
    const { events, clock, log } = this.#needs
    const before = iso(clock.now() - this.#times.events)
    const count = await events.prune(before, signal)
    if (count > 0) log.info({ events: count, before }, 'events were old enough to go')
  }
}

function storageSettings({ mail }: Config): StorageSettings {
  return { quota: mail.quota, operator: `postmaster@${mail.domain}` }
}
