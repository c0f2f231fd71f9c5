import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DirectoryLock } from '../../store/lock.ts'
import { draftsOf, mark, syncPath } from '../../store/files.ts'
import { refused } from './faults.ts'

export interface Owner {
  uid: number
  gid: number
}

/** Reserved names of a running restore. */
export const reserved = /^(?:\.restoring|unfinished)(?:\/|$)/

/** The lock files of a data directory. */
const locks = ['lock', 'lock-journal', 'lock.pid']

/** Names that a new file system has, the settings that `pillarbox init` keeps beside the data, and our own temporary names. */
const ignored = new Set(['lost+found', 'pillarbox.yaml', 'backup.passphrase', '.restoring', ...locks])

/**
 * Creates a directory atomically: built beside its name and renamed, or, where an empty one exists (a mount, a service directory), built
 * inside it and moved up. Removes what a killed process left.
 */
export class RestoreTarget {
  readonly directory: string
  /** The build directory, with a file that lists the moved names, one a line. */
  readonly draft: string
  /** The file that marks the directory as complete: it is moved last. */
  readonly #last: string
  readonly #inside: boolean
  /** No box can start there while it is held. */
  readonly #lock: DirectoryLock | undefined
  /** True if the lock was created here. */
  readonly #ownLock: boolean
  readonly #moved: string[] = []

  /** Throws Fault when the directory is not empty, and a sentence when a box is running there. */
  constructor(directory: string, last: 'state.json' | 'master.key') {
    this.directory = resolve(directory)
    this.#last = last
    this.#inside = existsSync(this.directory)
    const [inside, beside] = draftsOf(this.directory)
    this.draft = this.#inside ? inside : beside
    const above = dirname(this.directory)
    if (!existsSync(above)) throw refused(`The directory ${above} does not exist. Create it first.`, 'no_directory')
    if (this.#inside) this.#mustBeDirectory()
    this.#ownLock = !existsSync(join(this.directory, locks[0]!))
    this.#lock = this.#inside && last === 'state.json' ? new DirectoryLock(this.directory) : undefined
    try {
      this.#lock?.note()
      this.#removeUnfinished()
      if (this.#inside && existsSync(join(beside, mark))) rmSync(beside, { recursive: true })
      if (this.#inside) this.#mustBeEmpty()
      mkdirSync(this.draft, { mode: 0o700 })
      writeFileSync(join(this.draft, mark), '', { mode: 0o600 })
    } catch (error) {
      this.#release()
      throw error
    }
  }

  static isFree(directory: string): boolean {
    return !existsSync(directory) || contentOf(directory).length === 0
  }

  /** Moves the built files to their names. Throws Fault when other files have appeared, and leaves those unchanged. */
  adopt(owner: Owner): void {
    const names = readdirSync(this.draft).filter((name) => name !== mark)
    this.#give(owner)
    for (const name of names) syncPath(join(this.draft, name))
    if (existsSync(this.directory)) this.#mustBeEmpty()
    if (this.#inside) {
      writeFileSync(join(this.draft, mark), names.map((name) => `${name}\n`).join(''), { flush: true })
      syncPath(this.draft)
      for (const name of names.filter((one) => one !== this.#last)) this.#move(name)
      syncPath(this.directory)
      this.#move(this.#last)
      rmSync(this.draft, { recursive: true })
      syncPath(this.directory)
    } else {
      rmSync(join(this.draft, mark))
      syncPath(this.draft)
      renameSync(this.draft, this.directory)
      this.#moved.push(...names)
      syncPath(dirname(this.directory))
    }
    this.#lock?.release()
  }

  /** Removes everything, also what was moved already. */
  abandon(): void {
    for (const name of this.#moved) rmSync(join(this.directory, name), { recursive: true, force: true })
    if (!this.#inside && this.#moved.length > 0) rmdirSync(this.directory)
    rmSync(this.draft, { recursive: true, force: true })
    this.#release()
  }

  #move(name: string): void {
    renameSync(join(this.draft, name), join(this.directory, name))
    this.#moved.push(name)
  }

  #release(): void {
    if (!this.#lock) return
    if (this.#ownLock) for (const name of locks) rmSync(join(this.directory, name), { force: true })
    this.#lock.release()
  }

  #removeUnfinished(): void {
    if (!existsSync(this.draft)) return
    const note = join(this.draft, mark)
    if (!existsSync(note) && readdirSync(this.draft).length > 0)
      throw refused(`${this.draft} exists and does not belong to a restore. Move it away.`, 'in_the_way')
    if (this.#inside && existsSync(note) && !existsSync(join(this.directory, this.#last))) {
      const moved = readFileSync(note, 'utf8').split('\n')
      for (const name of moved.filter((one) => one !== '')) rmSync(join(this.directory, name), { recursive: true, force: true })
    }
    rmSync(this.draft, { recursive: true })
  }

  #mustBeDirectory(): void {
    if (!statSync(this.directory).isDirectory()) throw refused(`${this.directory} is not a directory.`, 'not_empty')
  }

  #mustBeEmpty(): void {
    const there = contentOf(this.directory)
    if (there.length === 0) return
    throw refused(
      `${this.directory} is not empty (${there.slice(0, 3).join(', ')}${there.length > 3 ? ', …' : ''}): a backup can be restored only into an empty directory. ` +
        'Move its files away, or specify another directory; nothing was changed.',
      'not_empty',
    )
  }

  /** Sets the owner when root restores for another user. */
  #give({ uid, gid }: Owner): void {
    if (process.getuid?.() !== 0) return
    const all = readdirSync(this.draft, { recursive: true, encoding: 'utf8' }).map((name) => join(this.draft, name))
    const held =
      this.#lock && this.#ownLock ? locks.map((name) => join(this.directory, name)).filter((path) => existsSync(path)) : []
    for (const path of [...all, this.draft, ...held]) chownSync(path, uid, gid)
  }
}

function contentOf(directory: string): string[] {
  return readdirSync(directory).filter((name) => !ignored.has(name))
}
