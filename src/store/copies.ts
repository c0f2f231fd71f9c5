import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { day } from '../core/clock.ts'
import { storageFull } from '../core/fault.ts'
import { formatBytes } from './space.ts'
import { freeBytes, syncPath } from './files.ts'

/** How long the copy made before the last upgrade is kept, in milliseconds. */
const retention = 30 * day

/**
 * Copies a database to `<file>.before-<version>`, atomically, unless it was done for an upgrade that is still running.
 * Throws an Error with a readable message when there is no space for it.
 */
export function saveCopy(file: string, version: number, database: DatabaseSync): void {
  if (upgradingFrom(file) < version) return
  const copy = copyOf(file, version)
  const draft = `${copy}.part`
  mustFit(file, copy, database)
  try {
    rmSync(draft, { force: true })
    closeSync(openSync(draft, 'wx', 0o600))
    database.prepare('VACUUM INTO ?').run(draft)
    syncPath(draft)
    renameSync(draft, copy)
    writeFileSync(noteOf(file), `${version}\n`, { mode: 0o600, flush: true })
    syncPath(dirname(file))
  } catch (error) {
    rmSync(draft, { force: true })
    const message = `${file} was not migrated: its copy ${copy} could not be written (${(error as Error).message}). Free space, and start again.`
    throw (error as { errcode?: number }).errcode === 13 ? storageFull(error, message) : new Error(message, { cause: error })
  }
}

/** Throws, before anything is written, when the copy does not fit on the disk. */
function mustFit(file: string, copy: string, database: DatabaseSync): void {
  const size = database
    .prepare(
      'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
    )
    .get()
  const [needed, free] = [Number(size!['bytes']), freeBytes(dirname(file))]
  if (free >= needed) return
  throw storageFull(
    undefined,
    `${file} was not migrated: the copy ${copy} that is made first needs ${formatBytes(needed)}, and ${formatBytes(free)} are free. Free space, and start again; nothing was changed.`,
  )
}

/** Notes that the database is being made: if that is cut off between two steps, there is nothing to copy before the next. */
export function noteNew(file: string): void {
  try {
    writeFileSync(noteOf(file), isNew, { mode: 0o600, flush: true })
    syncPath(dirname(file))
  } catch {
    // the first step says what is wrong with the disk
  }
}

/** Marks the upgrade as done. */
export function finishUpgrade(file: string): void {
  rmSync(noteOf(file), { force: true })
}

/** The version that a running upgrade began with, if its copy still exists; 0 for a database that is being made. */
function upgradingFrom(file: string): number {
  const note = noteOf(file)
  const text = existsSync(note) ? readFileSync(note, 'utf8') : ''
  if (text === isNew) return 0
  const version = text === '' ? Infinity : Number(text)
  return versionsOf(file).includes(version) ? version : Infinity
}

/** What the note of a database that is being made says, in place of a version. */
const isNew = 'new\n'

function noteOf(file: string): string {
  return `${file}.upgrading`
}

/** The newest copy of a version that this program knows, to go back to; undefined when there is none. */
export function copyBefore(file: string, known: number): string | undefined {
  const version = versionsOf(file).find((one) => one <= known)
  return version === undefined ? undefined : copyOf(file, version)
}

/** Removes the copies of former upgrades, and that of the last one once it is 30 days old: each is as large as the database was. */
export function pruneCopies(file: string): void {
  for (const [index, version] of versionsOf(file).entries()) {
    const copy = copyOf(file, version)
    try {
      if (index > 0 || Date.now() - statSync(copy).mtimeMs > retention) rmSync(copy)
    } catch {
      // the next start tries again
    }
  }
}

function copyOf(file: string, version: number): string {
  return `${file}.before-${version}`
}

/** Of the copies that are files, newest first. */
function versionsOf(file: string): number[] {
  const prefix = `${basename(file)}.before-`
  return readdirSync(dirname(file), { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.startsWith(prefix) && /^\d+$/.test(entry.name.slice(prefix.length)))
    .map(({ name }) => Number(name.slice(prefix.length)))
    .toSorted((one, other) => other - one)
}
