import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import type { CopiedTable, CopyProgress } from '../../store/copy/copy.ts'
import { mustBeNoRestore } from '../../store/files.ts'
import { DirectoryLock } from '../../store/lock.ts'
import { State } from '../../store/state.ts'
import { refused } from '../backup/faults.ts'
import { moveToPostgres } from './to-postgres.ts'
import { moveToSqlite } from './to-sqlite.ts'

interface MoveInput {
  data_dir: string
  /** The database of the settings. */
  database: PostgresTarget | undefined
  to: PostgresTarget | 'sqlite'
}

/**
 * Moves all data of a stopped box from its database file to PostgreSQL, or back; what it is moved from is left unchanged. A move that was interrupted goes
 * on. Returns the tables, which are the same there. Throws Fault, and InUse while the box runs.
 */
export async function moveBox(
  { data_dir, database, to }: MoveInput,
  options: CopyProgress = {},
): Promise<Record<string, CopiedTable>> {
  // before the lock: to stop the box would not help
  if (to === 'sqlite' && database === undefined)
    throw refused('database.url is not set: it names the database that is moved. Nothing was changed.', 'on_sqlite')
  mustBeNoRestore(data_dir)
  const box = boxIn(data_dir)
  const lock = new DirectoryLock(data_dir)
  try {
    lock.note()
    return await (to === 'sqlite' ? moveToSqlite(data_dir, box, database!, options) : moveToPostgres(data_dir, box, to, options))
  } finally {
    lock.release()
  }
}

function boxIn(directory: string): string {
  const file = join(directory, 'state.json')
  try {
    return State.parse(JSON.parse(readFileSync(file, 'utf8'))).box_id
  } catch (error) {
    throw refused(`There is no box in ${directory}: ${file} cannot be read. Nothing was changed.`, 'no_box', error)
  }
}
