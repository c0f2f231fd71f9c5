import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncPath } from './files.ts'

/**
 * Rewrites the database file of a stopped box, so that it holds only the content of its tables and no remains of moved or deleted rows. Needs
 * as much space as the file has. When it is killed, the file is either the old or the new one.
 */
function rewrite(file: string): void {
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

/** Removes the file of an interrupted rewrite. */
export function dropDraft(file: string): void {
  rmSync(draftOf(file), { force: true })
}

function draftOf(file: string): string {
  return `${file}.rewritten`
}

/** Rewrites the file after a rotation of the master key: it still holds remains of rows that the previous key opens. */
export function forgetFormer(file: string): void {
  try {
    rewrite(file)
  } catch (error) {
    const message =
      `The new master key is in use, but ${file} could not be rewritten (${(error as Error).message}): bytes that the former key ` +
      'decrypts may still be in it. Correct that (it needs as much free space as the size of the file), and run this again.'
    throw new Error(message, { cause: error })
  }
}
