import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { wordIndex } from '../../mail/search/stored-words.ts'
import { copyIntoFile } from '../../store/copy/into-file.ts'
import { beginSnapshot } from '../../store/copy/postgres-side.ts'
import { type Connection, type PostgresTarget, withoutValues } from '../../store/postgres/connections.ts'
import { openCopySource } from '../../store/postgres/prepare.ts'
import { diskFault, refused } from './faults.ts'
import { boxOf, described, type Snapshot, stateOf } from './snapshot.ts'

/**
 * Copies the database of a box on PostgreSQL, running or not, into a new database file as of one moment, with `state.json` of the same moment. It does
 * not block writers.
 */
export async function takeServerSnapshot(
  directory: string,
  target: PostgresTarget,
  copy: string,
  signal?: AbortSignal,
): Promise<Snapshot> {
  const connection = await openCopySource(target, false).catch((error: unknown) => {
    throw refused(`${(error as Error).message} Nothing was backed up.`, 'database_unavailable', error)
  })
  try {
    const state = await snapshotOfState(connection, directory)
    const box = boxOf(directory, state)
    await mustFit(connection, copy)
    await copyIntoFile(connection, copy, { ...box, words: wordIndex, resumable: false, signal })
    return { state, ...described(copy, copy), ...box }
  } catch (error) {
    signal?.throwIfAborted()
    withoutValues(error)
    throw diskFault(error, 'The database could not be copied')
  } finally {
    await connection.end().catch(() => {})
  }
}

/** Begins the snapshot of the database at a moment when `state.json` does not change; returns that file. */
async function snapshotOfState(connection: Connection, directory: string): Promise<Buffer> {
  for (let tries = 0; tries < 5; tries += 1) {
    const state = stateOf(directory)
    await beginSnapshot(connection)
    // accounts are in one and their data in the other: both must be of the same moment
    if (stateOf(directory).equals(state)) return state
    await connection.query('ROLLBACK')
  }
  throw refused('state.json changes while the database is copied. Try again.', 'busy')
}

/** Checks the space first, as a copy that does not fit would fill the disk of the box. */
async function mustFit(connection: Connection, copy: string): Promise<void> {
  const { rows } = await connection.query('SELECT pg_database_size(current_database()) AS size')
  const { size } = rows[0] as { size: number }
  const folder = dirname(copy)
  const { bavail, bsize } = statfsSync(folder)
  if (bavail * bsize > size) return
  const message = `${folder} has too little free space: ${size} bytes are required, ${bavail * bsize} are free. Partial files were removed.`
  throw refused(message, 'storage_full')
}
