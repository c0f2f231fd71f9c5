import { dirname } from 'node:path'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import { wordIndex } from '../../mail/search/stored-words.ts'
import { copyIntoFile } from '../../store/copy/into-file.ts'
import { beginSnapshot, bytesOf } from '../../store/copy/postgres-side.ts'
import { type Connection, withoutValues } from '../../store/postgres/connections.ts'
import { openCopySource } from '../../store/postgres/prepare.ts'
import { documentOn } from '../../store/postgres/shared-state.ts'
import { diskFault, refused, requireSpace } from './faults.ts'
import { boxOf, type Completion, described, type Snapshot, stateOf } from './snapshot.ts'

/**
 * Copies the database of a box on PostgreSQL, running or not, into a new database file as of one moment, with `state.json` of the same moment. It does
 * not block writers. `complete` is called with the copy before it is described.
 */
export async function takeServerSnapshot(
  directory: string,
  target: PostgresTarget,
  copy: string,
  signal?: AbortSignal,
  complete: Completion = async () => {},
): Promise<Snapshot> {
  const connection = await openCopySource(target, false).catch((error: unknown) => {
    throw refused(`${(error as Error).message} Nothing was backed up.`, 'database_unavailable', error)
  })
  try {
    const state = await snapshotOfState(connection, directory)
    const box = boxOf(directory, state)
    // a copy that does not fit would fill the disk of the box
    requireSpace(dirname(copy), await bytesOf(connection))
    await copyIntoFile(connection, copy, { ...box, words: wordIndex, resumable: false, signal })
    await complete(copy, (object) => refers(target, object))
    return { state, ...described(copy, copy), ...box }
  } catch (error) {
    signal?.throwIfAborted()
    withoutValues(error)
    throw diskFault(error, 'The database could not be copied')
  } finally {
    await connection.end().catch(() => {})
  }
}

/** Asks on a connection of its own, as the other one reads a snapshot. */
async function refers(target: PostgresTarget, object: string): Promise<boolean> {
  const connection = await openCopySource(target, false)
  try {
    const { rows } = await connection.query({ text: 'SELECT 1 FROM blobs WHERE object = $1', values: [object] })
    return rows.length > 0
  } finally {
    await connection.end().catch(() => {})
  }
}

/** The document that several boxes share, as the file would have it; undefined where there is none. */
async function sharedState(connection: Connection): Promise<Buffer | undefined> {
  const document = await documentOn(connection)
  return document === undefined ? undefined : Buffer.from(`${JSON.stringify(JSON.parse(document), null, 2)}\n`)
}

/** Begins the snapshot of the database at a moment when `state.json` does not change; returns that file. */
async function snapshotOfState(connection: Connection, directory: string): Promise<Buffer> {
  for (let tries = 0; tries < 5; tries += 1) {
    const state = stateOf(directory)
    await beginSnapshot(connection)
    // of several boxes it is a row, of which the file is a copy
    const shared = await sharedState(connection)
    if (shared) return shared
    // accounts are in one and their data in the other: both must be of the same moment
    if (stateOf(directory).equals(state)) return state
    await connection.query('ROLLBACK')
  }
  throw refused('state.json changes while the database is copied. Try again.', 'busy')
}
