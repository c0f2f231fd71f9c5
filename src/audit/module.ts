import type { AuditRecorder } from '../core/audit.ts'
import type { CronJob } from '../core/cron.ts'
import type { Config } from '../config.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Module, ModuleBasis } from '../module.ts'
import { agesAt } from '../store/old-rows.ts'
import { Collector } from './collector.ts'
import { AuditLog } from './log.ts'
import { routes } from './routes.ts'

/** The audit log: its rows, how long they are kept, and what is collected of reads. */
export class AuditModule implements Module {
  readonly name = 'audit'
  readonly routes: AnyRoute[]
  readonly recorder: AuditRecorder
  readonly #deps: Omit<ModuleBasis, 'audit'>
  readonly #rows: AuditLog
  readonly #collector: Collector
  #time: number

  constructor(deps: Omit<ModuleBasis, 'audit'>) {
    this.#deps = deps
    this.#time = deps.config.retention.audit
    this.#rows = new AuditLog(deps)
    this.#collector = new Collector({ ...deps, rows: this.#rows })
    this.recorder = {
      append: (tx, entry) => this.#rows.append(tx, entry),
      collect: (entry) => this.#collector.add(entry),
    }
    this.routes = routes(this.#rows)
  }

  get jobs(): CronJob[] {
    return [{ name: 'forget-audit', schedule: '33 4 * * *', run: (signal) => this.#forget(signal) }]
  }

  get work(): Promise<unknown> | undefined {
    return this.#collector.work
  }

  reload(config: Config): void {
    this.#time = config.retention.audit
  }

  stop(): Promise<void> {
    return this.#collector.stop()
  }

  async #forget(signal: AbortSignal | undefined): Promise<void> {
    const { clock, log } = this.#deps
    const ages = agesAt(clock.now(), this.#time)
    const count = await this.#rows.prune(ages, signal)
    if (count > 0) log.info({ rows: count, before: ages.before }, 'old rows of the audit log deleted')
  }
}
