import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { syncPath } from '../store/sync.ts'
import { refused } from './faults.ts'

/** Who owns what is restored. */
export interface Owner {
  uid: number
  gid: number
}

/** What lies in a place that is being built, and tells it from anything else; a line for each name that is moved out of it. */
const mark = 'unfinished'

/** What a new file system has before anybody has put something there, and our own. */
const ignored = new Set(['lost+found', '.restoring'])

/**
 * A directory that comes to be all at once: built beside its name and moved there, or, where an empty one is there already (a mount, a
 * directory of the service), built inside it and moved up. What a killed process left of one is removed.
 */
export class Place {
  readonly directory: string
  /** Where it is built. */
  readonly draft: string
  /** The one file without which nobody takes the directory for a whole one: it is moved last. */
  readonly #last: string
  readonly #inside: boolean
  #adopted = false

  /** Throws Fault when the directory holds anything. */
  constructor(directory: string, last: string) {
    this.directory = resolve(directory)
    this.#last = last
    this.#inside = existsSync(this.directory)
    this.draft = this.#inside ? join(this.directory, '.restoring') : `${this.directory}.part`
    const above = dirname(this.directory)
    if (!existsSync(above)) throw refused(`There is no directory ${above}. Make it first.`, 'no_directory')
    this.#removeUnfinished()
    if (this.#inside) this.#mustBeEmpty()
    mkdirSync(this.draft, { mode: 0o700 })
    writeFileSync(join(this.draft, mark), '', { mode: 0o600 })
  }

  /** Whether nothing is in a directory, or it is not there. */
  static isFree(directory: string): boolean {
    return !existsSync(directory) || contentOf(directory).length === 0
  }

  /** What was built gets its name. */
  adopt(owner: Owner): void {
    const names = readdirSync(this.draft).filter((name) => name !== mark)
    this.#give(owner)
    for (const name of names) syncPath(join(this.draft, name))
    this.#adopted = true
    if (this.#inside) {
      writeFileSync(join(this.draft, mark), names.map((name) => `${name}\n`).join(''), { flush: true })
      syncPath(this.draft)
      for (const name of names.filter((one) => one !== this.#last)) renameSync(join(this.draft, name), join(this.directory, name))
      syncPath(this.directory)
      renameSync(join(this.draft, this.#last), join(this.directory, this.#last))
      rmSync(this.draft, { recursive: true })
      syncPath(this.directory)
    } else {
      rmSync(join(this.draft, mark))
      syncPath(this.draft)
      renameSync(this.draft, this.directory)
      syncPath(dirname(this.directory))
    }
  }

  /** Nothing is left of what was begun, also when it had its name already. */
  abandon(): void {
    if (this.#adopted) {
      const made = this.#inside ? contentOf(this.directory).map((name) => join(this.directory, name)) : [this.directory]
      for (const path of made) rmSync(path, { recursive: true, force: true })
    }
    rmSync(this.draft, { recursive: true, force: true })
  }

  #removeUnfinished(): void {
    if (!existsSync(this.draft)) return
    const note = join(this.draft, mark)
    if (!existsSync(note) && readdirSync(this.draft).length > 0)
      throw refused(`${this.draft} is in the way: it is not of a restore. Move it away.`, 'in_the_way')
    if (this.#inside && existsSync(note) && !existsSync(join(this.directory, this.#last))) {
      const moved = readFileSync(note, 'utf8').split('\n')
      for (const name of moved.filter((one) => one !== '')) rmSync(join(this.directory, name), { recursive: true, force: true })
    }
    rmSync(this.draft, { recursive: true })
  }

  #mustBeEmpty(): void {
    if (!statSync(this.directory).isDirectory()) throw refused(`${this.directory} is not a directory.`, 'not_empty')
    const there = contentOf(this.directory)
    if (there.length === 0) return
    throw refused(
      `${this.directory} is not empty (${there.slice(0, 3).join(', ')}${there.length > 3 ? ', …' : ''}): a backup is restored onto nothing. ` +
        'Move what is there away, or name another directory; nothing was changed.',
      'not_empty',
    )
  }

  /** Root restores for the one whose place it is. */
  #give({ uid, gid }: Owner): void {
    if (process.getuid?.() !== 0) return
    const all = readdirSync(this.draft, { recursive: true, encoding: 'utf8' }).map((name) => join(this.draft, name))
    for (const path of [...all, this.draft]) chownSync(path, uid, gid)
  }
}

function contentOf(directory: string): string[] {
  return readdirSync(directory).filter((name) => !ignored.has(name))
}
