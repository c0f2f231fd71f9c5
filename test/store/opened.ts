import { join } from 'node:path'
import { createLog } from '../../src/core/log.ts'
import { SqliteDatabase, type SqliteOptions } from '../../src/store/sqlite/database.ts'
import { sql } from '../../src/store/database.ts'
import { prepareByCopy } from '../support/new-database.ts'
import { twice } from '../support/twice.ts'

export const quiet = createLog('silent')

/**
 * A fresh store in the directory; `file` is its path. Tests close it by `onTestFinished`: what a failed test leaves open is closed at a garbage
 * collection during some later file, with the warning DEP0137.
 */
export async function opened(directory: string, options?: SqliteOptions): Promise<{ file: string; database: SqliteDatabase }> {
  const file = join(directory, 'box.db')
  prepareByCopy(file, false)
  const database = await SqliteDatabase.open(file, quiet, { twice, ...options })
  return { file, database }
}

/** The same, with a table `t (id, v)`. */
export async function openedWithTable(directory: string, options?: SqliteOptions): ReturnType<typeof opened> {
  const { file, database } = await opened(directory)
  await database.transaction((tx) => tx.run(sql`CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v)`))
  await database.close()
  return { file, database: await SqliteDatabase.open(file, quiet, { twice, ...options }) }
}
