import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../core/fault.ts'
import { makeApart } from './apart.ts'
import type { Heed } from './apart.ts'
import { Archive } from './archive.ts'
import type { BackupWish, Made } from './make.ts'
import type { Manifest } from './manifest.ts'
import { passphraseIn } from './passphrase.ts'

export interface ShelfSettings {
  directory?: string | undefined
  passphrase_file?: string | undefined
  keep: number
}

/** One backup on the shelf. */
export interface Shelved {
  name: string
  size: number
  manifest: Manifest
}

const form = /^pillarbox-\d{8}T\d{9}Z\.tar$/

/** What a process that was killed can have left. */
const drafts = /^pillarbox-\d{8}T\d{9}Z\.tar\.part(?:\.db(?:-journal)?)?$/

/** A draft that nobody has written to for so long is nobody's, in milliseconds. */
const abandoned = 3_600_000

/** The directory in which the box keeps its newest backups. */
export class Shelf {
  readonly #settings: ShelfSettings

  constructor(settings: ShelfSettings) {
    this.#settings = settings
  }

  /** Makes one, then removes those of this box that are too many. Throws Fault. */
  async add(wish: Omit<BackupWish, 'file' | 'passphrase'>, heed: Heed = {}): Promise<Made & { removed: string[] }> {
    const directory = this.#directory()
    const passphrase = passphraseIn(this.#settings.passphrase_file)
    this.#clear(directory)
    const name = `pillarbox-${wish.created_at.replaceAll(/[-:.]/g, '')}.tar`
    const made = await makeApart({ ...wish, file: join(directory, name), passphrase }, heed)
    return { ...made, removed: this.#prune(directory, made.manifest.box_id) }
  }

  /** Those that can be read, of whatever box, newest first; none when no directory is set. Throws Fault when it cannot be read. */
  list(): Shelved[] {
    const { directory } = this.#settings
    if (directory === undefined) return []
    return namesIn(directory)
      .filter((name) => form.test(name))
      .flatMap((name) => shelved(directory, name))
      .toSorted((one, other) => other.manifest.created_at.localeCompare(one.manifest.created_at))
  }

  /** Throws Fault when nothing can be put there. */
  mustBeThere(): void {
    namesIn(this.#directory())
  }

  #directory(): string {
    const { directory } = this.#settings
    if (directory !== undefined) return directory
    throw new Fault('conflict', 'The box does not know where its backups go: set backup.directory, and reload.', {
      code: 'backup_not_configured',
    })
  }

  #prune(directory: string, box: string): string[] {
    const surplus = this.list()
      .filter(({ manifest }) => manifest.box_id === box)
      .slice(this.#settings.keep)
      .map(({ name }) => name)
    for (const name of surplus) rmSync(join(directory, name), { force: true })
    return surplus
  }

  #clear(directory: string): void {
    for (const name of namesIn(directory).filter((one) => drafts.test(one))) {
      const file = join(directory, name)
      if (Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > abandoned) rmSync(file, { force: true })
    }
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    const message = `The directory of backups cannot be read: ${(error as Error).message}. Make it, or mend backup.directory.`
    throw new Fault('conflict', message, { code: 'backup_not_configured', cause: error })
  }
}

/** What is damaged at its beginning is not counted, and not removed either: verify tells. */
function shelved(directory: string, name: string): Shelved[] {
  try {
    const { size, manifest } = new Archive(join(directory, name))
    return [{ name, size, manifest }]
  } catch {
    return []
  }
}
