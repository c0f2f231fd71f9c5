import { Fault } from '../../core/fault.ts'

/** A backup that is not what was written: the sentence says where. */
export function damaged(file: string, what: string, cause?: unknown): Fault {
  return new Fault('invalid_request', `${file} is damaged: ${what}. Take another backup; nothing was changed.`, {
    code: 'backup_damaged',
    cause,
  })
}

/** Why something cannot be done, and what would be right. */
export function refused(message: string, code: string, cause?: unknown): Fault {
  return new Fault('invalid_request', message, { code, cause })
}

/** The words for a failure of the file system; everything else comes back as it is. */
export function diskFault(error: unknown, what: string): unknown {
  if (error instanceof Fault) return error
  const { code, errcode } = error as { code?: string; errcode?: number }
  const kind = (errcode ?? 0) & 0xff
  // EFBIG is the limit of the process, 778 a write that SQLite was refused
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG' || kind === 13 || errcode === 778) {
    return refused(
      `${what}: the disk is full. Make room, or choose another place; nothing was left behind.`,
      'storage_full',
      error,
    )
  }
  return refused(`${what}: ${(error as Error).message}. Nothing was left behind.`, 'backup_failed', error)
}
