import { closeSync, existsSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Fault, storageFull } from '../core/fault.ts'
import { copyBefore, finishUpgrade, noteNew, saveCopy, pruneCopies } from './copies.ts'
import { expectedSchema } from './expected-schema.ts'
import { checkFiles, Newer, syncPath } from './files.ts'
import { dropDraft } from './rewrite.ts'
import { asFault } from './sqlite/failures.ts'

/** "PBOX": marks the file as ours. */
export const applicationId = 0x50424f58

/** Bytes above which the page-by-page check runs in the background, so that the start does not wait for it. */
const quickCheckLimit = 64 * 1024 * 1024

const ownMigrations = fileURLToPath(new URL('./migrations/', import.meta.url))

/** Lets tests replace the migrations. */
export interface MigrationTest {
  prepare?: typeof prepare
}

/**
 * Checks the database file and migrates it to the version of this program; each migration runs once, in order, in its own transaction. Before
 * that, a database with content is copied to `<file>.before-<version>`; the last such copy is kept for 30 days. Throws an Error that names the
 * file when it is missing although `expected`, empty, damaged, not a Pillarbox database, or newer than this program; it is then left unchanged.
 */
export function prepare(file: string, expected: boolean, folder: string = ownMigrations): void {
  bringUpToDate(file, expected, folder, true)
  pruneCopies(file)
}

/** The same without a copy, for a database that has been copied already. */
export function migrateCopied(file: string): void {
  bringUpToDate(file, true, ownMigrations, false)
}

/** The newest version that this program knows. */
export function knownVersion(): number {
  return readMigrations(ownMigrations).length
}

function bringUpToDate(file: string, expected: boolean, folder: string, copied: boolean): void {
  const migrations = readMigrations(folder)
  dropDraft(file)
  const version = checkFiles(file, expected) ? checkContent(file, expected, migrations) : create(file)
  const database = new DatabaseSync(file, { timeout: 5000 })
  try {
    // can only be set for a file without tables; `reclaim` needs it
    if (version === 0) database.exec('PRAGMA auto_vacuum = INCREMENTAL')
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
    if (version === 0) noteNew(file)
    else if (copied && version < migrations.length) saveCopy(file, version, database)
    migrate(file, database, version, migrations)
    finishUpgrade(file)
  } finally {
    database.close()
  }
  syncPath(dirname(file))
}

/** Runs `PRAGMA quick_check` over the whole file; returns the first error, or null. */
function quickCheck(database: DatabaseSync): string | null {
  return damageIn(database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string })
}

/** The error in a row of `PRAGMA quick_check`; null for `ok`. */
export function damageIn(row: { quick_check: string } | undefined): string | null {
  const text = row?.quick_check ?? 'no answer'
  // the first line only names the database
  return text === 'ok' ? null : text.split('\n').at(-1)!
}

/** Returns the version of the content. Opens the file read-only: closing any other connection could rewrite it. */
function checkContent(file: string, expected: boolean, migrations: string[]): number {
  const known = migrations.length
  const restore = 'Restore a backup; the file was not changed.'
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(unchanged(file), { readOnly: true, timeout: 5000 })
    const id = pragma(database, 'application_id')
    const version = pragma(database, 'user_version')
    const { n: tables } = database.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number }
    const fresh = id === 0 && version === 0 && tables === 0
    if (fresh && expected) throw new Refused(`${file} is empty, although this data directory had a database. ${restore}`)
    if (!fresh && id !== applicationId)
      throw new Refused(
        `${file} is not a Pillarbox database. Move it away, or set another data directory; the file was not changed.`,
      )
    if (version > known) {
      const copy = copyBefore(file, known)
      const way =
        copy === undefined
          ? ''
          : `, or move it away with its -wal and -shm and put ${copy}, from before the upgrade, in its place`
      throw new Newer(
        `${file} was written by a newer Pillarbox (version ${version}, this one knows ${known}). Run the newer program, or restore a backup${way}.`,
      )
    }
    if (!fresh && (version < 1 || tables === 0)) throw new Refused(`${file} is damaged: its tables are missing. ${restore}`)
    const missing = fresh ? undefined : firstMissing(database, migrations.slice(0, version))
    if (missing !== undefined) throw new Refused(`${file} is damaged: the ${missing} is missing. ${restore}`)
    const damage = statSync(file).size <= quickCheckLimit ? quickCheck(database) : null
    if (damage) throw new Refused(`${file} is damaged: ${damage}. ${restore}`)
    return version
  } catch (error) {
    if (error instanceof Refused || error instanceof Newer) throw error
    throw new Error(`${file} is damaged or cannot be read: ${(error as Error).message}. ${restore}`, { cause: error })
  } finally {
    database?.close()
  }
}

/** The first table or index that these migrations create and the database does not have, or undefined. */
function firstMissing(database: DatabaseSync, migrations: string[]): string | undefined {
  const present = new Set(namesIn(database))
  return expectedSchema(migrations.map((path) => readFileSync(path, 'utf8'))).find((name) => !present.has(name))
}

function namesIn(database: DatabaseSync): string[] {
  const rows = database.prepare(`SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'index')`).all()
  return rows.map(({ type, name }) => `${String(type)} ${String(name)}`)
}

class Refused extends Error {}

/** The URL to open the file unchanged: without a log there is nothing to recover, and `immutable` keeps SQLite from creating one. */
export function unchanged(file: string): URL {
  const url = pathToFileURL(file)
  if (!statSync(`${file}-wal`, { throwIfNoEntry: false })?.size) url.searchParams.set('immutable', '1')
  return url
}

function pragma(database: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return (database.prepare(`PRAGMA ${name}`).get() as Record<string, number>)[name]!
}

/** Creates the file with mode 600: SQLite would use the umask, and gives the log the mode of the database. */
function create(file: string): number {
  if (!existsSync(file)) closeSync(openSync(file, 'wx', 0o600))
  return 0
}

function migrate(file: string, database: DatabaseSync, version: number, migrations: string[]): void {
  for (const [index, path] of migrations.entries()) {
    if (index < version) continue
    const text = readFileSync(path, 'utf8')
    try {
      database.exec('BEGIN IMMEDIATE')
      database.exec(text)
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${index + 1}; COMMIT`)
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      const message = `${file} stays at version ${index}: the migration ${path} failed (${(error as Error).message}).`
      const fault = asFault(error)
      throw fault instanceof Fault && fault.code === 'storage_full'
        ? storageFull(error, `${message} Free space, and start again.`)
        : new Error(message, { cause: error })
    }
  }
}

/** The paths of `0001_name.sql`, … in order; the position of a file is its version. */
function readMigrations(folder: string): string[] {
  const names = readdirSync(folder)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .toSorted()
  const misnumbered = names.find((name, index) => Number(name.slice(0, 4)) !== index + 1)
  if (misnumbered !== undefined) throw new Error(`The migration ${misnumbered} is not numbered in order.`)
  return names.map((name) => `${folder.replace(/\/$/, '')}/${name}`)
}
