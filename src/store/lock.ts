import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * One process a data directory. The lock is the operating system's own (through an empty SQLite file), so a killed process leaves none behind.
 * Throws a sentence when another process holds it.
 */
export class Lock {
  readonly #database: DatabaseSync

  constructor(directory: string) {
    const file = join(directory, 'lock')
    this.#database = new DatabaseSync(file, { timeout: 0 })
    try {
      this.#database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    } catch (error) {
      this.#database.close()
      throw new Error(`The data directory ${directory} is in use by another Pillarbox process${holder(file)}. Stop it first.`, {
        cause: error,
      })
    }
    writeFileSync(`${file}.pid`, `${process.pid}\n`, { mode: 0o600 })
  }

  release(): void {
    this.#database.close()
  }
}

function holder(file: string): string {
  try {
    return ` (process ${readFileSync(`${file}.pid`, 'utf8').trim()})`
  } catch {
    return ''
  }
}
