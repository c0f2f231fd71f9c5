import { join } from 'node:path'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import type { CopiedTable, CopyProgress } from '../../store/copy/copy.ts'
import { mustBeNoRestore } from '../../store/files.ts'
import { DirectoryLock } from '../../store/lock.ts'
import { StateFile } from '../../store/state.ts'
import { refused } from '../backup/faults.ts'
import { moveToPostgres } from './to-postgres.ts'
import { moveToSqlite } from './to-sqlite.ts'

interface MoveInput {
  data_dir: string
  /** The database of the settings. */
  database: PostgresTarget | undefined
  to: PostgresTarget | 'sqlite'
  /** True if several boxes are to use the database. */
  several: boolean
}

/**
 * Moves all data of a stopped box from its database file to PostgreSQL, or back; what it is moved from is left unchanged. A move that was interrupted goes
 * on. Returns the tables, which are the same there. Throws Fault, and InUse while the box runs.
 */
export async function moveBox(
  { data_dir, database, to, several }: MoveInput,
  options: CopyProgress = {},
): Promise<Record<string, CopiedTable>> {
  // before the lock: to stop the box would not help
  if (to === 'sqlite' && database === undefined)
    throw refused('database.url is not set: it names the database that is moved. Nothing was changed.', 'on_sqlite')
  mustBeNoRestore(data_dir)
  const lock = new DirectoryLock(data_dir)
  try {
    lock.note()
    const state = await stateIn(data_dir)
    return await (to === 'sqlite'
      ? moveToSqlite(data_dir, state, database!, options)
      : moveToPostgres(data_dir, state.data, to, { ...options, several }))
  } finally {
    lock.release()
  }
}

async function stateIn(directory: string): Promise<StateFile> {
  const file = join(directory, 'state.json')
  try {
    return await StateFile.open(file, () => {
      throw new Error(`${file} is missing`)
    })
  } catch (error) {
    throw refused(`There is no box in ${directory}: ${file} cannot be read. Nothing was changed.`, 'no_box', error)
  }
}
