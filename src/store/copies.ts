import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { syncPath } from './sync.ts'

/** How long the copy from before the last upgrade is kept, in milliseconds. */
const kept = 30 * 86_400_000

/**
 * Copies a database to `<file>.before-<version>`, whole or not at all, unless that was done before an upgrade that is under way since.
 * Throws a sentence when there is no room for it.
 */
export function keepCopy(file: string, version: number, database: DatabaseSync): void {
  if (begunFrom(file) < version) return
  const copy = copyOf(file, version)
  const draft = `${copy}.part`
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
    const message = `${file} was not migrated: its copy ${copy} could not be written (${(error as Error).message}). Make room, and start again.`
    throw new Error(message, { cause: error })
  }
}

/** The upgrade is done, and what comes next is another. */
export function forgetUpgrade(file: string): void {
  rmSync(noteOf(file), { force: true })
}

/** The version that an upgrade under way began with, if its copy is there still. */
function begunFrom(file: string): number {
  const note = noteOf(file)
  const version = existsSync(note) ? Number(readFileSync(note, 'utf8')) : Infinity
  return versionsOf(file).includes(version) ? version : Infinity
}

function noteOf(file: string): string {
  return `${file}.upgrading`
}

/** The copy from before a version that this program still knows, to go back to; undefined when there is none. */
export function copyBefore(file: string, known: number): string | undefined {
  const version = versionsOf(file).find((one) => one <= known)
  return version === undefined ? undefined : copyOf(file, version)
}

/** Removes the copies of former upgrades, and that of the last one once it is 30 days old: each is as large as the database was. */
export function pruneCopies(file: string): void {
  for (const [place, version] of versionsOf(file).entries()) {
    const copy = copyOf(file, version)
    try {
      if (place > 0 || Date.now() - statSync(copy).mtimeMs > kept) rmSync(copy)
    } catch {
      // it only takes room: the next start tries again
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
