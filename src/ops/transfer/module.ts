import { join } from 'node:path'
import type { Config } from '../../config.ts'
import type { CronJob } from '../../core/cron.ts'
import type { AnyRoute } from '../../http/route.ts'
import type { Identities } from '../../identities/identities.ts'
import type { Jobs } from '../../jobs/jobs.ts'
import type { MailArchive } from '../../mail/archive.ts'
import type { SignedUrls } from '../../mail/attachments.ts'
import type { ModuleBasis, Module } from '../../module.ts'
import type { SmsArchive } from '../../sms/archive.ts'
import { Exports } from './exports.ts'
import { Imports } from './imports.ts'
import { routes } from './routes.ts'

interface Deps extends ModuleBasis {
  jobs: Jobs
  identities: Identities
  mail: MailArchive
  sms: SmsArchive
  urls: SignedUrls
  /** The routes of the whole box, available once it is assembled. */
  routes: () => readonly AnyRoute[]
}

export class TransferModule implements Module {
  readonly name = 'transfer'
  readonly routes: AnyRoute[]
  readonly jobs: CronJob[]
  readonly #exports: Exports
  readonly #imports: Imports
  #limit: number

  constructor(deps: Deps) {
    const { config } = deps
    this.#limit = config.transfer.upload_limit
    this.#exports = new Exports({ ...deps, directory: join(config.data_dir, 'exports') })
    this.#imports = new Imports({ ...deps, limit: () => this.#limit, directory: join(config.data_dir, 'imports') })
    this.routes = routes(this.#exports, this.#imports)
    this.jobs = [{ name: 'sweep-exports', schedule: '23 * * * *', run: () => this.#exports.sweep() }]
  }

  async start(): Promise<void> {
    await this.#exports.sweep()
    await this.#imports.sweep()
  }

  reload(config: Config): void {
    this.#limit = config.transfer.upload_limit
  }
}
