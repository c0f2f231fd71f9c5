import { existsSync, linkSync, readdirSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { makeKey, masterKey, readKey, Seal, syncFolder } from './seal.ts'

/** The steps of a rotation; each is reported once it is on disk. */
export type Step = 'made' | 'sealed' | 'former kept' | 'in use'

/** A name for a master key that reveals nothing of it: stored with encrypted values to identify their key. */
export function nameOf(master: Buffer): string {
  return new Seal(master).key('name').toString('hex')
}

/**
 * The master key: in `master.key` of the keys directory, or in a configured file that is never written. During a rotation the next key is
 * beside it as `master.key.next`; the former one stays as `master.key.former`.
 */
export class MasterKey {
  readonly #directory: string
  readonly #given: string | undefined

  constructor(directory: string, given?: string) {
    this.#directory = directory
    this.#given = given
  }

  /** The key in use; made when there is none and none is `expected`. Throws a sentence when it cannot be read. */
  read(expected: boolean): Buffer {
    return this.#given === undefined ? masterKey(this.#directory, expected) : readKey(this.#given, true)
  }

  /**
   * The key that everything is sealed under, given its name (null: nothing is yet). Finishes or drops an interrupted rotation. Throws
   * a sentence when it is another than the one in use.
   */
  settle(name: string | null): Buffer {
    const current = this.read(true)
    if (this.#given !== undefined) {
      if (name === null || nameOf(current) === name) return current
      throw this.#wrong(this.#given, name)
    }
    if (name === null || nameOf(current) === name) {
      this.#drop()
      return current
    }
    if (this.#opens(this.#next, name)) {
      this.adopt()
      return this.read(true)
    }
    throw this.#wrong(this.#file, name)
  }

  /** Creates the next key. Throws a sentence when the key in use is in a file that the box cannot change. */
  prepare(): Buffer {
    if (this.#given !== undefined) {
      const file = join(this.#directory, 'master.key')
      throw new Error(
        `The master key is read from ${this.#given}, which the box cannot change. With the box stopped, copy it to ${file} ` +
          `(mode 0600), rotate with neither master_key_file nor the credential set, and use ${file} from then on.`,
      )
    }
    this.#drop()
    makeKey(this.#next)
    return readKey(this.#next)
  }

  /** Replaces the key in use with the next one; the former key is kept. May be interrupted anywhere, and repeated. */
  adopt(told: (step: Step) => void = () => {}): void {
    rmSync(this.former, { force: true })
    linkSync(this.#file, this.former)
    syncFolder(dirname(this.#file))
    told('former kept')
    renameSync(this.#next, this.#file)
    syncFolder(dirname(this.#file))
    told('in use')
  }

  /** The key before the last rotation: backups from before it open with this one only. */
  get former(): string {
    return `${this.#file}.former`
  }

  /** The file itself: it may be linked to from elsewhere, and is replaced where it lies. */
  get #file(): string {
    return realpathSync(join(this.#directory, 'master.key'))
  }

  get #next(): string {
    return `${this.#file}.next`
  }

  /** Removes a key that nothing was sealed under, complete or not. */
  #drop(): void {
    const [folder, name] = [dirname(this.#next), basename(this.#next)]
    for (const entry of readdirSync(folder)) {
      if (entry === name || (entry.startsWith(`${name}.`) && /^[0-9a-f]{12}$/.test(entry.slice(name.length + 1)))) {
        rmSync(join(folder, entry))
      }
    }
  }

  #opens(file: string, name: string): boolean {
    try {
      return nameOf(readKey(file)) === name
    } catch {
      return false
    }
  }

  #wrong(file: string, name: string): Error {
    const own = join(this.#directory, 'master.key')
    const others = existsSync(own) ? [realpathSync(own), this.former] : [own]
    const right = others.find((other) => other !== file && this.#opens(other, name))
    const remedy =
      right === undefined
        ? 'Restore the one that belongs to it from a backup'
        : `${right} is: ${this.#given === undefined ? 'put it in its place' : 'provide that key'}`
    return new Error(`${file} is not the master key that encrypts this database. ${remedy}; nothing was changed.`)
  }
}
