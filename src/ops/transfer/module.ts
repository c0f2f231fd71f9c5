import { join } from 'node:path'
import type { AnyRoute } from '../../http/route.ts'
import type { Identities } from '../../identities/identities.ts'
import type { Jobs } from '../../jobs/jobs.ts'
import type { MailArchive } from '../../mail/archive.ts'
import type { SignedUrls } from '../../mail/attachments.ts'
import type { ModuleBasis, Module } from '../../module.ts'
import type { SmsArchive } from '../../sms/archive.ts'
import { LocalExportFiles, SharedExportFiles } from './export-files.ts'
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

export function transferModule(deps: Deps): Module {
  const { data_dir, transfer } = deps.config
  let limit = transfer.upload_limit
  const filed = { ...deps, directory: join(data_dir, 'exports') }
  const files = deps.database.several ? new SharedExportFiles(filed) : new LocalExportFiles(filed)
  const exports = new Exports({ ...filed, files })
  const imports = new Imports({ ...deps, limit: () => limit, directory: join(data_dir, 'imports') })
  return {
    name: 'transfer',
    routes: routes(exports, imports),
    jobs: [{ name: 'sweep-exports', schedule: '23 * * * *', everywhere: true, run: () => exports.sweep() }],
    start: async () => {
      const { several, engine } = deps.database
      if (engine === 'postgres' && !several) await new SharedExportFiles(filed).takeOver(filed.directory)
      await exports.sweep()
      await imports.sweep()
    },
    reload: (config) => {
      limit = config.transfer.upload_limit
    },
  }
}
