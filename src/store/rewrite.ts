import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Log } from '../core/log.ts'
import { syncPath } from './files.ts'

/**
 * Rewrites the database file of a stopped box, so that it holds only the content of its tables and no remains of moved or deleted rows. Needs
 * as much space as the file has. When it is killed, the file is either the old one, whose rewrite is still due, or the new one.
 */
function rewrite(file: string): void {
  const draft = draftOf(file)
  dropDraft(file)
  try {
    closeSync(openSync(draft, 'wx', 0o600))
    using(file, (database) => {
      database.exec('PRAGMA auto_vacuum = INCREMENTAL')
      database.prepare('VACUUM INTO ?').run(draft)
    })
    using(draft, (database) => database.exec('PRAGMA journal_mode = MEMORY; UPDATE box SET rewrite_due = 0'))
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

function using<T>(file: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file, { timeout: 5000 })
  try {
    return work(database)
  } finally {
    database.close()
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
      'decrypts may still be in it. Correct that (it needs as much free space as the size of the file); the next start rewrites it.'
    throw new Error(message, { cause: error })
  }
}

/** Rewrites the file if the last rotation of the master key did not. A failure is logged, and the next start tries again. */
export function finishRewrite(file: string, log: Log): void {
  const due = using(file, (database) => database.prepare('SELECT 1 FROM box WHERE rewrite_due = 1').get() !== undefined)
  if (!due) return
  log.info({ file }, 'the rotation of the master key was interrupted: rewriting the database file')
  try {
    forgetFormer(file)
    log.info({ file }, 'database file rewritten: nothing in it opens with the former master key')
  } catch (error) {
    log.warn({ problem: (error as Error).message }, 'database file not rewritten after the rotation of the master key')
  }
}
