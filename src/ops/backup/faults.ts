import { Fault } from '../../core/fault.ts'
import { freeBytes } from '../../store/files.ts'

/** A damaged backup: the sentence names the place. */
export function damaged(file: string, what: string, cause?: unknown): Fault {
  return new Fault('invalid_request', `${file} is damaged: ${what}. Use another backup; nothing was changed.`, {
    code: 'backup_damaged',
    cause,
  })
}

/** The fault of an operation that is refused, with its remedy. */
export function refused(message: string, code: string, cause?: unknown): Fault {
  return new Fault('invalid_request', message, { code, cause })
}

/** Throws Fault `storage_full` when a directory has not more free space than so many bytes. */
export function requireSpace(directory: string, needed: number, about = ''): void {
  const free = freeBytes(directory)
  if (free > needed) return
  const message = `${directory} has too little free space: ${about}${needed} bytes are required, ${free} are free. Partial files were removed.`
  throw refused(message, 'storage_full')
}

/** True for an error of the file system or of SQLite that means a full disk. */
export function isDiskFull(error: unknown): boolean {
  const { code, errcode } = error as { code?: string; errcode?: number }
  // EFBIG is the process limit, 778 a write refused by SQLite
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG' || ((errcode ?? 0) & 0xff) === 13 || errcode === 778
}

/** Describes file system errors; returns other errors unchanged. */
export function diskFault(error: unknown, what: string): unknown {
  if (error instanceof Fault) return error
  if (isDiskFull(error)) {
    return refused(
      `${what}: the disk is full. Free space, or choose another directory; partial files were removed.`,
      'storage_full',
      error,
    )
  }
  return refused(`${what}: ${(error as Error).message}. Partial files were removed.`, 'backup_failed', error)
}
