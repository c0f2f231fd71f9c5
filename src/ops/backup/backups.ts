import { basename } from 'node:path'
import type { Basis } from '../../basis.ts'
import { iso } from '../../core/clock.ts'
import type { Caller } from '../../core/scopes.ts'
import { type Page, type Paging, picked } from '../../core/shapes.ts'
import type { Jobs } from '../../jobs/jobs.ts'
import type { Job } from '../../jobs/model.ts'
import type { KeyPlace } from './key-files.ts'
import type { BackupInput } from './make.ts'
import { Backup } from './model.ts'
import { BackupDirectory, type BackupDirectorySettings, momentOf, type StoredBackup } from './backup-directory.ts'

export interface BackupSettings extends BackupDirectorySettings, KeyPlace {
  data_dir: string
  /** The database of a box on PostgreSQL; that of the start. */
  database: BackupInput['database']
  /** The store of objects; that of the start. */
  objects: BackupInput['objects']
  mail_domain: string
}

interface Deps extends Pick<Basis, 'version' | 'clock' | 'cursors' | 'log'> {
  settings: BackupSettings
  box: string
  jobs: Jobs
}

export class Backups {
  readonly #deps: Deps
  #settings: BackupSettings

  constructor(deps: Deps) {
    this.#deps = deps
    this.#settings = deps.settings
  }

  reload(settings: BackupSettings): void {
    const { database, objects } = this.#settings
    this.#settings = { ...settings, database, objects }
  }

  /** Starts a backup. Throws Fault conflict when no directory is configured, or another is running. */
  async begin(caller: Caller): Promise<Job> {
    const { jobs, clock, version, log } = this.#deps
    const { data_dir, database, objects, keys_dir, master_key_file, mail_domain } = this.#settings
    const backupDirectory = new BackupDirectory(this.#settings)
    // so that the caller gets a missing directory as an error
    await backupDirectory.requireWritable()
    const place = { data_dir, database, objects, keys_dir, master_key_file, mail_domain }
    return jobs.start(
      caller,
      'backup',
      async (report, signal) => {
        const created_at = iso(clock.now())
        const progress = (done: number, total: number | null): void => report({ done, total, unit: 'bytes' })
        const made = await backupDirectory.add({ ...place, program_version: version, created_at }, { signal, progress })
        const { file, size, manifest, warnings, removed } = made
        report({ done: manifest.database_size, total: manifest.database_size, unit: 'bytes' })
        for (const warning of warnings) log.warn({ file, warning }, 'backup is not complete')
        log.info({ file, size, keys: manifest.keys, removed }, 'backup created')
        return { name: basename(file), size, created_at, keys: manifest.keys === 'sealed', warnings, removed }
      },
      { scopes: ['account:read'] },
    )
  }

  async list(paging: Paging): Promise<Page<Backup>> {
    const { limit, offset } = paging
    const before = this.#deps.cursors.start('backups', paging) ?? Infinity
    const backupDirectory = new BackupDirectory(this.#settings)
    const found: StoredBackup[] = []
    for (const name of (await backupDirectory.names()).filter((one) => momentOf(one) < before)) {
      if (found.length > offset + limit) break
      const one = await backupDirectory.read(name)
      if (one) found.push(one)
    }
    const page = found.slice(offset, offset + limit)
    const has_more = found.length > offset + limit
    const data = page.map(({ manifest, ...one }) => picked(Backup, { ...manifest, ...one, keys: manifest.keys === 'sealed' }))
    const next_cursor = has_more ? this.#deps.cursors.write('backups', momentOf(page.at(-1)!.name)) : null
    return { data, has_more, next_cursor }
  }

  /** The time of the newest backup of this box, in milliseconds; undefined without one. */
  async newest(): Promise<number | undefined> {
    const newest = await new BackupDirectory(this.#settings).newest(this.#deps.box, this.#deps.clock.now())
    return newest && Date.parse(newest.manifest.created_at)
  }
}
