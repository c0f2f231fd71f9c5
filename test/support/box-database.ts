import { PostgresDatabase } from '../../src/store/postgres/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'

/** The engine of the boxes that `appliance` starts, for tests that watch what is asked of it. */
export const BoxDatabase = (
  process.env['TEST_POSTGRES'] === undefined ? SqliteDatabase : PostgresDatabase
) as typeof SqliteDatabase
