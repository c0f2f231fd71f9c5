import { closeSync, constants, existsSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { InUse } from '../core/fault.ts'

const busy = 5

/** The file of Linux with an id that is new each time the machine starts. */
const bootId = '/proc/sys/kernel/random/boot_id'

/**
 * Locks a data directory for one process. The lock is one of the operating system (on an empty SQLite file), so a killed process leaves none.
 * Nothing else in this process may open the file `lock`: closing it would drop the lock (POSIX).
 * Throws InUse with a readable message when another process holds it.
 */
export class DirectoryLock {
  readonly #file: string
  readonly #database: DatabaseSync

  constructor(directory: string) {
    const file = join(directory, 'lock')
    this.#file = file
    create(file)
    this.#database = new DatabaseSync(file, { timeout: 0 })
    try {
      // nothing is ever written, and a journal would need space on a full disk
      this.#database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (error) {
      this.#database.close()
      throw refusal(directory, file, error as Error)
    }
  }

  /** Writes the id of this process into `lock.pid`, for the operator. It overwrites the file in place: a full disk has no free block. */
  note(): void {
    const text = `${process.pid}\n`
    const handle = openSync(`${this.#file}.pid`, constants.O_WRONLY | constants.O_CREAT, 0o600)
    try {
      writeSync(handle, text, 0)
      ftruncateSync(handle, text.length)
    } finally {
      closeSync(handle)
    }
  }

  /** Names the directory among all that are locked until the machine is restarted; undefined where the system has no id for that. A copy has another name. */
  get name(): string | undefined {
    if (!existsSync(bootId)) return undefined
    const { dev, ino } = statSync(this.#file, { bigint: true })
    return `${readFileSync(bootId, 'utf8').trim()}:${dev}:${ino}`
  }

  release(): void {
    this.#database.close()
  }
}

/** Creates the file with mode 600; an existing file is not opened. */
function create(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new Error(`${file} cannot be created: ${(error as Error).message}`, { cause: error })
  }
}

function refusal(directory: string, file: string, cause: Error & { errcode?: number }): Error {
  if (((cause.errcode ?? 0) & 0xff) === busy)
    return new InUse(`The data directory ${directory} is in use by another Pillarbox process${holder(file)}. Stop it first.`, {
      cause,
    })
  return new Error(`${file} cannot be locked: ${cause.message}. Remove it if no Pillarbox is running.`, { cause })
}

function holder(file: string): string {
  try {
    return ` (process ${readFileSync(`${file}.pid`, 'utf8').trim()})`
  } catch {
    return ''
  }
}
