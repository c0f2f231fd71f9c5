import { Fault, storageFull } from '../../core/fault.ts'

const busy = 5
const ioFailed = 10
const corrupt = 11
const full = 13
const cannotOpen = 14
const writeFailed = 778 // SQLITE_IOERR_WRITE
const indexGrowFailed = 4874 // SQLITE_IOERR_SHMSIZE
const syncFailed = [1034, 1290] // SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC

/** Converts an error of SQLite to a Fault; other errors are returned unchanged. */
export function asFault(error: unknown): unknown {
  const code = errorCode(error)
  if (code === undefined) return error
  // some file systems report a full disk or quota as an input/output error
  if ((code & 0xff) === full || code === writeFailed || code === indexGrowFailed) return storageFull(error)
  if ((code & 0xff) === busy) return passing('storage_busy', 'Another program has locked the database. Try again later.', error)
  if ((code & 0xff) === ioFailed || (code & 0xff) === cannotOpen)
    return passing('storage_unavailable', 'The disk of the box failed. Try again later.', error)
  // SQLite reports a read that fails with EIO as a damaged file (SQLITE_IOERR_CORRUPTFS)
  if ((code & 0xff) === corrupt)
    return passing('storage_unavailable', 'The disk of the box failed, or its database is damaged. Try again later.', error)
  return error
}

function passing(code: string, message: string, cause: unknown): Fault {
  return new Fault('internal_error', message, { code, retryAfter: 5, cause })
}

/** True if a sync to disk failed. */
export function isSyncFailure(error: unknown): boolean {
  return syncFailed.includes(errorCode(error) ?? 0)
}

function errorCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null | undefined)?.errcode
  return typeof code === 'number' ? code : undefined
}
