import type { Config } from '../../config.ts'
import type { Jobs } from '../../jobs/jobs.ts'
import type { ModuleBasis, Module } from '../../module.ts'
import { Backups, type BackupSettings } from './backups.ts'
import { routes } from './routes.ts'

interface Deps extends ModuleBasis {
  /** The identifier of the box in its backups. */
  state: { readonly data: { box_id: string } }
  jobs: Jobs
}

export function backupModule(deps: Deps): Module {
  const backups = new Backups({ ...deps, box: deps.state.data.box_id, settings: settingsOf(deps.config) })
  deps.metrics.gauge(
    'pillarbox_backup_last_timestamp_seconds',
    'Unix time of the newest backup in backup.directory; 0 without one',
    async (gauge) => gauge.set(await newest(backups)),
  )
  return { name: 'backup', routes: routes(backups), reload: (config) => backups.reload(settingsOf(config)) }
}

/** An unreadable directory counts as empty. */
async function newest(backups: Backups): Promise<number> {
  try {
    return ((await backups.newest()) ?? 0) / 1000
  } catch {
    return 0
  }
}

function settingsOf({ backup, blobs, data_dir, database, keys_dir, master_key_file, mail }: Config): BackupSettings {
  const stores = { database: database.url, objects: blobs.s3 }
  return { ...backup, ...stores, data_dir, keys_dir, master_key_file, mail_domain: mail.domain }
}
