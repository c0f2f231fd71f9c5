import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { InUse } from '../core/in-use.ts'

const busy = 5

/**
 * One process a data directory. The lock is the operating system's own (through an empty SQLite file), so a killed process leaves none behind.
 * Nothing else in this process may open the file `lock`: closing it would drop the lock (POSIX).
 * Throws InUse, a sentence, when another process holds it.
 */
export class Lock {
  readonly #database: DatabaseSync

  constructor(directory: string) {
    const file = join(directory, 'lock')
    create(file)
    this.#database = new DatabaseSync(file, { timeout: 0 })
    try {
      this.#database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    } catch (error) {
      this.#database.close()
      throw refusal(directory, file, error as Error)
    }
    writeFileSync(`${file}.pid`, `${process.pid}\n`, { mode: 0o600 })
  }

  release(): void {
    this.#database.close()
  }
}

/** Readable by nobody else; a file that is there is not even opened. */
function create(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new Error(`${file} cannot be made: ${(error as Error).message}`, { cause: error })
  }
}

function refusal(directory: string, file: string, cause: Error & { errcode?: number }): Error {
  if (((cause.errcode ?? 0) & 0xff) === busy)
    return new InUse(`The data directory ${directory} is in use by another Pillarbox process${holder(file)}. Stop it first.`, {
      cause,
    })
  return new Error(`${file} cannot be locked: ${cause.message}. Remove it when no Pillarbox is running.`, { cause })
}

function holder(file: string): string {
  try {
    return ` (process ${readFileSync(`${file}.pid`, 'utf8').trim()})`
  } catch {
    return ''
  }
}
