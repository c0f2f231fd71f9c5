import { existsSync, openSync, readdirSync, readFileSync, readSync, closeSync, statSync, fsyncSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** "PBOX": marks the file as ours. */
const applicationId = 0x50424f58

/** Above this size in bytes the page-by-page check is left to the background: the start must not wait for it. */
export const quickCheckLimit = 64 * 1024 * 1024

const folder = new URL('./migrations/', import.meta.url)

/**
 * Checks the database file and brings it to this program's version, each migration once, in order, in one transaction each.
 * Throws a sentence with the file's name when the file is missing although there was one (`expected`), empty, damaged, not ours, or
 * newer than this program. Never overwrites what it refuses.
 */
export function prepare(file: string, expected: boolean): void {
  checkHeader(file, expected)
  const database = new DatabaseSync(file, { timeout: 5000 })
  try {
    const version = checkContent(file, database)
    migrate(database, version)
  } finally {
    database.close()
  }
  const handle = openSync(dirname(file), 'r')
  fsyncSync(handle)
  closeSync(handle)
}

/** `PRAGMA quick_check` over the whole file; answers the first trouble, or null. */
export function quickCheck(database: DatabaseSync): string | null {
  const row = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
  return row.quick_check === 'ok' ? null : row.quick_check
}

function checkHeader(file: string, expected: boolean): void {
  const restore = 'Restore a backup, or move the data directory away to start an empty box.'
  if (!existsSync(file)) {
    if (expected) throw new Error(`${file} is missing, although this data directory had a database. ${restore}`)
    return
  }
  if (statSync(file).size === 0) {
    // a start that was cut off before the first migration leaves an empty file behind
    if (expected) throw new Error(`${file} is empty, although this data directory had a database. ${restore}`)
    return
  }
  const header = Buffer.alloc(100)
  const handle = openSync(file, 'r')
  try {
    readSync(handle, header, 0, 100, 0)
  } finally {
    closeSync(handle)
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0')
    throw new Error(`${file} is damaged: it is not a SQLite database. ${restore}`)
}

function checkContent(file: string, database: DatabaseSync): number {
  const restore = 'Restore a backup; the file was left as it is.'
  try {
    const { application_id: id } = database.prepare('PRAGMA application_id').get() as { application_id: number }
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number }
    const { n: tables } = database.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number }
    if (tables > 0 && id !== applicationId) throw new Refused(`${file} is not a Pillarbox database.`)
    const known = migrations().length
    if (version > known) {
      throw new Refused(
        `${file} was written by a newer Pillarbox (version ${version}, this one knows ${known}). Run the newer program, or restore a backup.`,
      )
    }
    const trouble = statSync(file).size <= quickCheckLimit ? quickCheck(database) : null
    if (trouble) throw new Refused(`${file} is damaged: ${trouble}. ${restore}`)
    return version
  } catch (error) {
    if (error instanceof Refused) throw error
    throw new Error(`${file} is damaged: ${(error as Error).message}. ${restore}`, { cause: error })
  }
}

class Refused extends Error {}

function migrate(database: DatabaseSync, version: number): void {
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  for (const [index, name] of migrations().entries()) {
    if (index < version) continue
    const text = readFileSync(new URL(name, folder), 'utf8')
    database.exec('BEGIN IMMEDIATE')
    try {
      database.exec(text)
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${index + 1}; COMMIT`)
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw new Error(`The migration ${name} failed: ${(error as Error).message}`, { cause: error })
    }
  }
}

/** `0001_name.sql`, … in order; a file's place is its version. */
function migrations(): string[] {
  return readdirSync(folder)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .toSorted()
}
