import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { day, hour } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import { type BackupOptions, backUpInChild } from './run-in-child.ts'
import { BackupArchive } from './archive/archive.ts'
import type { BackupInput, MadeBackup } from './make.ts'
import type { Manifest } from './archive/manifest.ts'
import { passphraseIn } from './key-files.ts'

export interface BackupDirectorySettings {
  directory?: string | undefined
  passphrase_file?: string | undefined
  keep: number
}

export interface StoredBackup {
  name: string
  size: number
  manifest: Manifest
}

const form = /^pillarbox-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z\.tar$/

/** Files that a killed process can leave behind. */
const drafts = /^pillarbox-\d{8}T\d{9}Z\.tar\.part(?:\.db(?:-journal|-wal|-shm)?)?$/

/** The age at which an unchanged draft is abandoned, in milliseconds. */
const abandoned = hour

/** The directory of the newest backups. It may be on a network file system: no call here blocks the event loop. */
export class BackupDirectory {
  readonly #settings: BackupDirectorySettings

  constructor(settings: BackupDirectorySettings) {
    this.#settings = settings
  }

  /** Makes a backup, then removes the oldest ones of this box. Throws Fault. */
  async add(
    input: Omit<BackupInput, 'file' | 'passphrase'>,
    options: BackupOptions = {},
  ): Promise<MadeBackup & { removed: string[] }> {
    const directory = this.#directory()
    const passphrase = passphraseIn(this.#settings.passphrase_file)
    await this.#clear(directory)
    const name = `pillarbox-${input.created_at.replaceAll(/[-:.]/g, '')}.tar`
    const made = await backUpInChild({ ...input, file: join(directory, name), passphrase }, options)
    return { ...made, ...(await this.#prune(directory, name, made)) }
  }

  /** The names of all backups, of any box, newest first; none without a directory. Throws Fault when it cannot be read. */
  async names(): Promise<string[]> {
    const { directory } = this.#settings
    if (directory === undefined) return []
    const names = await namesIn(directory)
    return names.filter((name) => form.test(name)).toSorted((one, other) => (one < other ? 1 : -1))
  }

  /**
   * The newest backup of a box, under any file name: `pillarbox backup FILE` may have put it there. Looks into the 50 most recently written
   * files; not one that was made while the clock was ahead. `now` is in milliseconds. Throws Fault when the directory cannot be read.
   */
  async newest(box: string, now: number): Promise<StoredBackup | undefined> {
    const { directory } = this.#settings
    if (directory === undefined) return undefined
    const seen = await Promise.all(
      (await namesIn(directory)).map(async (name) => ({ name, entry: await stat(join(directory, name)).catch(() => undefined) })),
    )
    const files = seen.filter(({ entry }) => entry?.isFile()).toSorted((one, other) => other.entry!.mtimeMs - one.entry!.mtimeMs)
    const found: StoredBackup[] = []
    for (const { name } of files.slice(0, 50)) {
      const one = await this.read(name)
      if (one?.manifest.box_id === box && !isAhead(Date.parse(one.manifest.created_at), now)) found.push(one)
    }
    return found.toSorted((one, other) => (one.manifest.created_at < other.manifest.created_at ? 1 : -1))[0]
  }

  /** One backup; undefined if it is missing or its manifest is damaged: verify reports details. */
  async read(name: string): Promise<StoredBackup | undefined> {
    try {
      const { size, manifest } = await BackupArchive.open(join(this.#directory(), name))
      return { name, size, manifest }
    } catch {
      return undefined
    }
  }

  /** Throws Fault when the directory is not writable. */
  async requireWritable(): Promise<void> {
    await namesIn(this.#directory())
  }

  #directory(): string {
    const { directory } = this.#settings
    if (directory !== undefined) return directory
    throw new Fault('conflict', 'No backup directory is configured: set backup.directory, and reload.', {
      code: 'backup_not_configured',
    })
  }

  /** Removes what is above the number to keep beside a new one: first what was made while the clock was ahead, then the oldest. */
  async #prune(
    directory: string,
    made: string,
    { manifest: { box_id, created_at }, warnings }: MadeBackup,
  ): Promise<{ removed: string[]; warnings: string[] }> {
    const others: string[] = []
    for (const name of await this.names())
      if (name !== made && (await this.read(name))?.manifest.box_id === box_id) others.push(name)
    const ahead = others.filter((name) => isAhead(momentOf(name), Date.parse(created_at)))
    const surplus = [...others.filter((name) => !ahead.includes(name)), ...ahead].slice(this.#settings.keep - 1)
    const pruned = { removed: [] as string[], warnings: [...warnings] }
    for (const name of surplus) {
      try {
        await rm(join(directory, name), { force: true })
        pruned.removed.push(name)
      } catch (error) {
        // the next backup removes it
        pruned.warnings.push(`${name} could not be removed: ${(error as Error).message}.`)
      }
    }
    return pruned
  }

  async #clear(directory: string): Promise<void> {
    for (const name of (await namesIn(directory)).filter((one) => drafts.test(one))) {
      const file = join(directory, name)
      const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Infinity }))
      if (Date.now() - mtimeMs > abandoned) await rm(file, { force: true })
    }
  }
}

/** True for a time of a clock that was ahead; those of several boxes differ a little. */
function isAhead(time: number, now: number): boolean {
  return time > now + day
}

/** The time of the backup in this name, in milliseconds since 1970. */
export function momentOf(name: string): number {
  return Date.parse(name.replace(form, '$1-$2-$3T$4:$5:$6.$7Z'))
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory)
  } catch (error) {
    const message = `The directory of backups cannot be read: ${(error as Error).message}. Create it, or correct backup.directory.`
    throw new Fault('conflict', message, { code: 'backup_not_configured', cause: error })
  }
}
