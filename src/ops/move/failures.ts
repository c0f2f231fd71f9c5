import { Fault } from '../../core/fault.ts'
import { Different } from '../../store/copy/copy.ts'
import { WrongValue } from '../../store/copy/postgres-side.ts'
import { sqlState, withoutValues } from '../../store/postgres/connections.ts'
import { isDiskFull, refused } from '../backup/faults.ts'

const goesOn = 'What was copied is kept: run the same command again, and it goes on. The box that is moved was not changed.'

/** The Fault of a copy that stopped. */
export function stopped(error: unknown): unknown {
  if (error instanceof Fault || !(error instanceof Error)) return error
  withoutValues(error)
  if (error instanceof Different || error instanceof WrongValue)
    return refused(
      `${error.message} The box that is moved was not changed. Run the command again, which begins anew.`,
      'move_failed',
      error,
    )
  if (isDiskFull(error))
    return refused(`The move stopped: the disk of the data directory is full. Free space. ${goesOn}`, 'storage_full', error)
  const kind = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  // SQLITE_CORRUPT, SQLITE_NOTADB
  if (kind === 11 || kind === 26)
    return refused(
      `The move stopped: a database file is damaged (${error.message}). Restore a backup.`,
      'database_damaged',
      error,
    )
  if (sqlState(error) === '53100')
    return refused(
      `The move stopped: the disk of the database server is full. Free space there. ${goesOn}`,
      'storage_full',
      error,
    )
  return refused(`The move stopped: ${error.message.replace(/\.$/, '')}. ${goesOn}`, 'move_failed', error)
}
