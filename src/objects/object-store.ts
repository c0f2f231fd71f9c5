import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { Clock } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Log } from '../core/log.ts'
import { type Database, join, sql, type Transaction } from '../store/database.ts'
import { Bucket, type BucketSettings } from './bucket.ts'
import { BucketFailure } from './bucket-failure.ts'
import type { ObjectMetrics } from './metrics.ts'

interface ObjectSettings extends BucketSettings {
  /** Bytes above which a raw message is an object. */
  above: number
}

interface Deps {
  database: Database
  clock: Clock
  log: Log
  metrics: ObjectMetrics
  settings: ObjectSettings
}

type Operation = 'put' | 'get' | 'delete'

/** Objects that are deleted in one turn, and at the same time. */
const batch = { objects: 100, concurrent: 8 }

/** The store of objects of a box: its availability is logged, and objects that nothing refers to are deleted. */
export class ObjectStore {
  readonly #deps: Deps
  readonly #bucket: Bucket
  readonly #stopping = new AbortController()
  #away = false
  #sweeping: Promise<void> | undefined
  #again = false

  constructor(deps: Deps) {
    this.#deps = deps
    this.#bucket = new Bucket(deps.settings)
  }

  get above(): number {
    return this.#deps.settings.above
  }

  get prefix(): string {
    return this.#deps.settings.prefix
  }

  /** Resolves when no objects are being deleted. */
  get work(): Promise<void> | undefined {
    return this.#sweeping
  }

  /** Throws Fault `storage_unavailable`. */
  async put(object: string, bytes: Uint8Array): Promise<void> {
    await this.#timed('put', () => this.#bucket.put(object, bytes)).catch((error: unknown) => {
      throw unavailable('The store of large e-mails is not available. Try again later.', error)
    })
  }

  /** Reads an object of at most so many bytes. Throws BucketFailure. */
  get(object: string, limit: number): Promise<Buffer> {
    return this.#timed('get', () => this.#bucket.get(object, limit))
  }

  /** The Fault of a raw message that cannot be read. */
  unreadable(object: string, failure: BucketFailure): Fault {
    const { kind, message: problem } = failure
    if (kind !== 'missing' && kind !== 'damaged')
      return unavailable('The raw message is in a store of objects that is not available. Try again later.', failure)
    this.#deps.log.error({ object, problem }, 'raw message missing or damaged in the store of objects')
    return unavailable('The store of objects has lost or damaged the raw message; its text, codes and links are here.', failure)
  }

  /** Writes, reads and deletes an object. Throws BucketFailure. */
  async check(): Promise<void> {
    const object = `${this.prefix}probe-${randomUUID()}`
    const bytes = Buffer.from(object)
    try {
      await this.#timed('put', () => this.#bucket.put(object, bytes))
      const read = await this.#timed('get', () => this.#bucket.get(object, bytes.length))
      if (!read.equals(bytes)) throw new BucketFailure('damaged', 'The store of objects gave back other bytes than it was given.')
      await this.#timed('delete', () => this.#bucket.delete(object))
    } catch (error) {
      // it may have been written
      await this.#bucket.delete(object).catch(() => undefined)
      throw error
    }
  }

  /** Checks it at the start. Throws an Error when it is not as the settings say; one that does not answer is used once it does. */
  async start(): Promise<void> {
    try {
      await this.check()
    } catch (error) {
      if (!(error instanceof BucketFailure) || error.lasting) throw error
    }
  }

  /** Deletes objects whose e-mails were purged, soon; a failure is left to the next sweep. */
  sweepSoon(): void {
    this.#again = true
    this.#sweeping ??= this.#sweepAgain().finally(() => (this.#sweeping = undefined))
  }

  /** Deletes objects that nothing refers to, which are old enough. Throws BucketFailure. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const either = signal ? AbortSignal.any([signal, this.#stopping.signal]) : this.#stopping.signal
    for (;;) {
      if (either.aborted) return
      const due = await this.#deps.database.transaction((tx) => this.#claim(tx))
      if (due.length === 0) return
      for (let at = 0; at < due.length; at += batch.concurrent) {
        if (either.aborted) return
        const some = due.slice(at, at + batch.concurrent)
        await Promise.all(some.map((object) => this.#timed('delete', () => this.#bucket.delete(object))))
        await this.#deps.database.transaction((tx) =>
          tx.run(sql`DELETE FROM unreferenced_objects WHERE object IN (${join(some)})`),
        )
      }
    }
  }

  /** Finishes the deletion that runs. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#sweeping
  }

  async #sweepAgain(): Promise<void> {
    while (this.#again && !this.#stopping.signal.aborted) {
      this.#again = false
      await this.sweep().catch(() => undefined)
    }
  }

  /** The next objects to be deleted: from now on no blob can refer to them. */
  async #claim(tx: Transaction): Promise<string[]> {
    const rows = await tx.all<{ object: string }>(
      sql`SELECT object FROM unreferenced_objects WHERE delete_after <= ${this.#deps.clock.now()} ORDER BY delete_after LIMIT ${batch.objects}`,
    )
    if (rows.length === 0) return []
    const names = join(rows.map(({ object }) => object))
    // whatever the list says: what a blob refers to is kept
    await tx.run(sql`DELETE FROM unreferenced_objects WHERE object IN (SELECT object FROM blobs WHERE object IN (${names}))`)
    await tx.run(sql`UPDATE unreferenced_objects SET claimed = 1 WHERE object IN (${names})`)
    const claimed = await tx.all<{ object: string }>(sql`SELECT object FROM unreferenced_objects WHERE object IN (${names})`)
    return claimed.map(({ object }) => object)
  }

  async #timed<Result>(operation: Operation, work: () => Promise<Result>): Promise<Result> {
    const start = performance.now()
    try {
      const result = await work()
      this.#note()
      return result
    } catch (error) {
      if (!(error instanceof BucketFailure && error.kind === 'missing')) this.#deps.metrics.failures.labels(operation).inc()
      this.#note(error)
      throw error
    } finally {
      this.#deps.metrics.seconds.labels(operation).observe((performance.now() - start) / 1000)
    }
  }

  /** Logs when the store goes away, and when it is back: once each. */
  #note(error?: unknown): void {
    const { log, settings } = this.#deps
    const about = { endpoint: settings.endpoint, bucket: settings.bucket }
    const away = error !== undefined && !(error instanceof BucketFailure && ['missing', 'damaged'].includes(error.kind))
    if (away && !this.#away) {
      const problem = error instanceof Error ? error.message : 'it failed'
      log.error({ ...about, problem }, 'store of objects not available: large e-mails are deferred')
    }
    if (!away && this.#away) log.warn(about, 'store of objects available again')
    this.#away = away
  }
}

function unavailable(message: string, cause: unknown): Fault {
  return new Fault('internal_error', message, { code: 'storage_unavailable', retryAfter: 5, cause })
}
