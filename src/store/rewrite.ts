import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncPath } from './files.ts'

/**
 * Writes the file of a stopped box anew, with nothing in it but what its tables hold: what rows left behind as they moved and went is
 * gone. Needs as much room as the file has; killed at any moment, the file is the one before or the new one. Throws what went wrong.
 */
export function rewrite(file: string): void {
  const draft = draftOf(file)
  dropDraft(file)
  try {
    closeSync(openSync(draft, 'wx', 0o600))
    const database = new DatabaseSync(file, { timeout: 5000 })
    try {
      database.exec('PRAGMA auto_vacuum = INCREMENTAL')
      database.prepare('VACUUM INTO ?').run(draft)
    } finally {
      database.close()
    }
    // the log of the former file would be taken for that of the new one
    if (existsSync(`${file}-wal`)) throw new Error(`${file}-wal is in use`)
    syncPath(draft)
    renameSync(draft, file)
    syncPath(dirname(file))
  } catch (error) {
    dropDraft(file)
    throw error
  }
}

/** Removes what a rewriting left that was cut off. */
export function dropDraft(file: string): void {
  rmSync(draftOf(file), { force: true })
}

function draftOf(file: string): string {
  return `${file}.rewritten`
}

/** Of a new master key: rows that moved or went leave their octets in the file until it is written anew, and the former key would open them. */
export function forgetFormer(file: string): void {
  try {
    rewrite(file)
  } catch (error) {
    const message =
      `The new master key is in use, but ${file} could not be written anew (${(error as Error).message}): octets that the former key ` +
      'opens may still lie in it. Mend that (it takes as much room as the file has), and run this again.'
    throw new Error(message, { cause: error })
  }
}
