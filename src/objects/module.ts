import type { CronJob } from '../core/cron.ts'
import type { Module, ModuleBasis } from '../module.ts'
import { sql } from '../store/database.ts'
import { BucketFailure, remedies } from './bucket-failure.ts'
import { objectMetrics } from './metrics.ts'
import { ObjectStore } from './object-store.ts'
import { RawMessages } from './raw-messages.ts'
import { moveStoredMail } from './stored-mail.ts'

/** Where raw mail is stored. */
export class ObjectsModule implements Module {
  readonly name = 'objects'
  readonly raw: RawMessages
  /** Undefined where all raw mail is in the database. */
  readonly store: ObjectStore | undefined
  readonly #deps: Omit<ModuleBasis, 'events' | 'cursors' | 'audit'>

  constructor(deps: Omit<ModuleBasis, 'events' | 'cursors' | 'audit'>) {
    const { s3 } = deps.config.blobs
    this.#deps = deps
    const metrics = objectMetrics(deps.metrics, deps.database)
    this.store = s3 && new ObjectStore({ ...deps, metrics, settings: s3 })
    this.raw = new RawMessages({ ...deps, objects: this.store })
  }

  get jobs(): CronJob[] {
    const { store, raw } = this
    if (!store) return []
    const { database } = this.#deps
    return [
      { name: 'sweep-objects', schedule: '*/10 * * * *', run: (signal) => store.sweep(signal) },
      {
        name: 'move-raw-mail',
        schedule: '29 * * * *',
        run: (signal) => moveStoredMail({ database, raw, above: store.above }, signal),
      },
    ]
  }

  get work(): Promise<void> | undefined {
    return this.store?.work
  }

  /** Throws a sentence where raw mail could not be stored or read as the settings say. */
  async start(): Promise<void> {
    if (!this.store) return this.#requireNoObjects()
    try {
      await this.store.start()
    } catch (error) {
      if (!(error instanceof BucketFailure)) throw error
      throw new Error(`blobs.s3 cannot be used: ${error.message} ${remedies[error.kind]}`, { cause: error })
    }
  }

  async stop(): Promise<void> {
    await this.store?.stop()
  }

  async #requireNoObjects(): Promise<void> {
    const row = await this.#deps.database.get<{ object: string }>(
      sql`SELECT object FROM blobs WHERE object IS NOT NULL ORDER BY object LIMIT 1`,
    )
    if (!row) return
    throw new Error(
      `Raw mail of this box is in a store of objects (${row.object}), and blobs.s3 is not set: set it as before. To have all in the database again, make a backup with it, and restore that without it.`,
    )
  }
}
