import { Fault } from '../../core/fault.ts'

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

/** Describes file system errors; returns other errors unchanged. */
export function diskFault(error: unknown, what: string): unknown {
  if (error instanceof Fault) return error
  const { code, errcode } = error as { code?: string; errcode?: number }
  const kind = (errcode ?? 0) & 0xff
  // EFBIG is the process limit, 778 a write refused by SQLite
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG' || kind === 13 || errcode === 778) {
    return refused(
      `${what}: the disk is full. Free space, or choose another directory; partial files were removed.`,
      'storage_full',
      error,
    )
  }
  return refused(`${what}: ${(error as Error).message}. Partial files were removed.`, 'backup_failed', error)
}
