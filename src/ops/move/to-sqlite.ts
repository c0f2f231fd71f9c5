import { existsSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import { wordIndex } from '../../mail/search/stored-words.ts'
import type { CopiedTable, CopyProgress } from '../../store/copy/copy.ts'
import { copyIntoFile } from '../../store/copy/into-file.ts'
import { beginSnapshot, bytesOf } from '../../store/copy/postgres-side.ts'
import { freeBytes, removeDatabase, syncPath } from '../../store/files.ts'
import type { Connection } from '../../store/postgres/connections.ts'
import { forgetPostgres, isNoted, movingFile } from '../../store/postgres/note.ts'
import { openCopySource } from '../../store/postgres/prepare.ts'
import { documentOn, requireSameBox, stateOf } from '../../store/postgres/shared-state.ts'
import type { State, StateFile } from '../../store/state.ts'
import { refused } from '../backup/faults.ts'
import { stopped } from './failures.ts'

/** Copies the database of a stopped box on PostgreSQL into a file, which is its database then. Throws Fault. */
export async function moveToSqlite(
  directory: string,
  state: StateFile,
  source: PostgresTarget,
  options: CopyProgress,
): Promise<Record<string, CopiedTable>> {
  const file = join(directory, 'pillarbox.db')
  const draft = movingFile(directory)
  // an empty log is what a reader leaves
  const there = [file, `${file}-wal`].find((name) => (statSync(name, { throwIfNoEntry: false })?.size ?? 0) > 0)
  if (there !== undefined)
    throw refused(`${there} exists: it is of another time. Move it away; nothing was changed.`, 'not_empty')
  // without the note, a former move had everything
  if (!isNoted(directory, source) && !existsSync(draft))
    throw refused(`${directory} is not the data directory of the box in that database. Nothing was changed.`, 'no_box')
  const connection = await openCopySource(source, true).catch((error: unknown) => {
    throw refused(`${(error as Error).message} Nothing was changed.`, 'database_unavailable', error)
  })
  try {
    await beginSnapshot(connection)
    const shared = await sharedState(connection, state)
    if (!existsSync(draft)) await mustFit(connection, directory)
    const copied = await copyIntoFile(connection, draft, {
      ...options,
      box_id: state.data.box_id,
      words: wordIndex,
      resumable: true,
    })
    if (existsSync(`${draft}-wal`)) throw new Error(`${draft}-wal is in use`)
    syncPath(draft)
    if (shared) await state.replace(shared)
    // a box without the file does not start: nothing is lost between the two
    removeDatabase(file)
    forgetPostgres(directory)
    renameSync(draft, file)
    syncPath(directory)
    return copied
  } catch (error) {
    options.signal?.throwIfAborted()
    throw stopped(error)
  } finally {
    await connection.end().catch(() => {})
  }
}

/** The document of several boxes, of which the file may be a former copy; undefined where there is none. */
async function sharedState(connection: Connection, file: StateFile): Promise<State | undefined> {
  const document = await documentOn(connection)
  if (document === undefined) return undefined
  const shared = stateOf(document)
  requireSameBox(file, shared)
  return shared
}

async function mustFit(connection: Connection, directory: string): Promise<void> {
  const [size, free] = [await bytesOf(connection), freeBytes(directory)]
  if (free > size) return
  const message = `The disk of ${directory} has too little free space: the database has ${size} bytes, and ${free} are free. Nothing was changed.`
  throw refused(message, 'storage_full')
}
