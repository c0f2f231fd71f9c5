import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { removeDatabase } from '../files.ts'
import { prepare } from '../migrate.ts'
import type { Connection } from '../postgres/connections.ts'
import { type CopiedTable, copyDatabase, type CopyProgress, Different, momentQuery, originOf } from './copy.ts'
import { PostgresSource } from './postgres-side.ts'
import type { WordIndex } from './side.ts'
import { SqliteTarget, tablesOf, unfinishedCopyIn } from './sqlite-side.ts'

interface FileCopyOptions extends CopyProgress {
  box_id: string
  words: WordIndex
  /** Keeps what is copied when it is interrupted, so that the next call goes on. */
  resumable: boolean
}

/** Copies what a connection sees in its snapshot into a database file, with the same tables. Throws Different when they are not the same: it is removed. */
export async function copyIntoFile(
  connection: Connection,
  file: string,
  { box_id, words, resumable, ...options }: FileCopyOptions,
): Promise<Record<string, CopiedTable>> {
  const { rows } = await connection.query(momentQuery)
  const origin = originOf(box_id, rows[0])
  const draft = (resumable ? resumed(file, origin) : undefined) ?? begun(file, origin, resumable)
  try {
    const { database, target } = draft
    const source = new PostgresSource(connection)
    const copied = await copyDatabase(tablesOf(database), source, target, { ...options, words: words.reader(database) })
    target.finish()
    draft.database.close()
    return copied
  } catch (error) {
    draft.database.close()
    if (error instanceof Different) removeDatabase(file)
    throw error
  }
}

interface Draft {
  database: DatabaseSync
  target: SqliteTarget
}

/** The copy of the same origin that was interrupted; undefined where there is none. */
function resumed(file: string, origin: string): Draft | undefined {
  if (!existsSync(file)) return undefined
  const database = opened(file)
  try {
    if (unfinishedCopyIn(database) === origin) return { database, target: new SqliteTarget(database) }
  } catch {
    // a file that was cut is no copy
  }
  database.close()
  return undefined
}

function begun(file: string, origin: string, resumable: boolean): Draft {
  removeDatabase(file)
  prepare(file, false)
  const database = opened(file)
  try {
    // a copy that is not completed is discarded: it needs no journal
    database.exec(
      resumable
        ? 'PRAGMA synchronous = NORMAL'
        : 'PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF',
    )
    return { database, target: SqliteTarget.begin(database, origin) }
  } catch (error) {
    database.close()
    throw error
  }
}

function opened(file: string): DatabaseSync {
  // rows can come before those that they refer to
  return new DatabaseSync(file, { enableForeignKeyConstraints: false, timeout: 5000 })
}
