import { closeSync, existsSync, fsyncSync, openSync, readSync, rmSync, statfsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** The data was written by a newer version of the program. */
export class Newer extends Error {}

/** Throws Newer for a database of a newer version than the one that this program knows. */
export function mustNotBeNewer(what: string, version: number, known: number): void {
  if (version > known)
    throw new Newer(
      `${what} was written by a newer Pillarbox (version ${version}, this one knows ${known}). Run the newer program.`,
    )
}

/** Throws an Error for a database that is not of the version of this program, which is left as it is. */
export function mustBeCurrent(what: string, version: number, known: number): void {
  mustNotBeNewer(what, version, known)
  if (version < known)
    throw new Error(
      `${what} was last opened by an earlier Pillarbox (version ${version}, this one's is ${known}). Start the box once with this program.`,
    )
}

/** Bytes that this process may still write to the disk of a directory. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

/** Why a data directory cannot be opened: one of its parts, the database on a server, no space on its disk (`room`), or a program that is too old (`program`). */
export type Obstacle = 'directory' | 'state' | 'master_key' | 'database' | 'server' | 'room' | 'program'

/** The reason in an error that `openDirectory` threw; undefined for any other error. */
export function obstacleOf(error: unknown): Obstacle | undefined {
  return error instanceof Error && 'obstacle' in error ? (error.obstacle as Obstacle) : undefined
}

const restore = 'Restore a backup, or move the data directory away to start an empty box; nothing was changed.'

/**
 * Checks the database file and its log before SQLite opens them: SQLite takes an empty file for a new database, and ignores a log it cannot
 * read. Returns whether there is content. Throws an Error with a readable message when it is missing although `expected`, or damaged.
 */
export function checkFiles(file: string, expected: boolean): boolean {
  const log = `${file}-wal`
  const size = sizeOf(file)
  const logSize = sizeOf(log) ?? 0
  if (!size) {
    // a start that was interrupted before the first migration leaves an empty file behind, but never a log
    const state = size === undefined ? 'missing' : 'empty'
    if (expected) throw new Error(`${file} is ${state}, although this data directory had a database. ${restore}`)
    if (logSize > 0) throw new Error(`${file} is ${state}, although its log ${log} exists. ${restore}`)
    return false
  }
  if (head(file, 16).toString('latin1') !== 'SQLite format 3\0')
    throw new Error(`${file} is damaged: it is not a SQLite database. ${restore}`)
  // SQLite forces the header of its log to disk before the first frame: only a log without frames may be truncated by a power failure
  if (logSize > 32 && !isLogHeader(head(log, 32)))
    throw new Error(
      `${log} is damaged: it is not the log of a SQLite database, and may have contained the newest data. ${restore}`,
    )
  return true
}

/** The header of the write-ahead log with its own checksum (sqlite.org/walformat.html, section 4.2). */
function isLogHeader(header: Buffer): boolean {
  const magic = header.readUInt32BE(0)
  if (magic !== 0x377f0682 && magic !== 0x377f0683) return false
  const word = (offset: number): number => (magic & 1 ? header.readUInt32BE(offset) : header.readUInt32LE(offset))
  let first = 0
  let second = 0
  for (let offset = 0; offset < 24; offset += 8) {
    first = (first + word(offset) + second) >>> 0
    second = (second + word(offset + 4) + first) >>> 0
  }
  return header.readUInt32BE(24) === first && header.readUInt32BE(28) === second
}

function head(file: string, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  const handle = openSync(file, 'r')
  try {
    readSync(handle, bytes, 0, length, 0)
  } finally {
    closeSync(handle)
  }
  return bytes
}

function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size
}

/** The file that marks a directory as an unfinished restore. */
export const mark = 'unfinished'

/** The place in which a restore builds a directory: inside it when it exists, else beside it. */
export function draftsOf(directory: string): [inside: string, beside: string] {
  return [join(directory, '.restoring'), `${resolve(directory)}.part`]
}

/**
 * Throws an Error with a readable message when a restore is running or was interrupted: an empty box must not start in its place and refuse
 * mail.
 */
export function mustBeNoRestore(directory: string): void {
  if (existsSync(join(directory, 'state.json'))) return
  const draft = draftsOf(directory).find((one) => existsSync(join(one, mark)))
  if (draft === undefined) return
  throw new Error(
    `${draft} belongs to a restore that is running or was interrupted: wait until it ends, or run it again. To start an empty box, remove it.`,
  )
}

/** Removes a database file with what SQLite writes beside it. */
export function removeDatabase(file: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
}

/** Forces a file, or the names in a directory, to disk. Not for a file that SQLite has open: closing the handle drops its locks. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
