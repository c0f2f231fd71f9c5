import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import { wordIndex } from '../../mail/search/stored-words.ts'
import type { CopiedTable, CopyProgress } from '../../store/copy/copy.ts'
import { PostgresCopy } from '../../store/copy/into-postgres.ts'
import { checkFiles, mustBeCurrent } from '../../store/files.ts'
import { applicationId, damageIn, knownVersion, unchanged } from '../../store/migrate.ts'
import { databaseElsewhere, isNoted, notePostgres } from '../../store/postgres/note.ts'
import { textOf } from '../../store/postgres/shared-state.ts'
import type { State } from '../../store/state.ts'
import { refused } from '../backup/faults.ts'
import { stopped } from './failures.ts'

/** Copies the database file of a stopped box into an empty database of PostgreSQL, which is its database then. Throws Fault. */
export async function moveToPostgres(
  directory: string,
  state: State,
  target: PostgresTarget,
  { several, ...options }: CopyProgress & { several: boolean },
): Promise<Record<string, CopiedTable>> {
  const file = join(directory, 'pillarbox.db')
  const elsewhere = databaseElsewhere(directory)
  if (elsewhere !== undefined && (!isNoted(directory, target) || !existsSync(file)))
    throw refused(
      `${elsewhere} It can be moved to SQLite only: pillarbox move --to sqlite. Nothing was changed.`,
      'on_postgresql',
    )
  checkSource(file)
  const copy = await PostgresCopy.open(target, state.box_id).catch((error: unknown) => {
    throw refused((error as Error).message, 'database_unavailable', error)
  })
  try {
    // the file is from before: what happened since is on the server
    if (elsewhere !== undefined && !copy.begun) throw refused(`${elsewhere} Nothing was changed.`, 'on_postgresql')
    const whenSame = (): void => notePostgres(directory, target)
    const shared = several ? textOf(state) : undefined
    return await copy.fill(file, { ...options, box_id: state.box_id, words: wordIndex, shared, whenSame })
  } catch (error) {
    options.signal?.throwIfAborted()
    throw stopped(error)
  } finally {
    await copy.close()
  }
}

/** Throws Fault when the file is not a database of this version, or is damaged. */
function checkSource(file: string): void {
  try {
    checkFiles(file, true)
    using database = new DatabaseSync(unchanged(file), { readOnly: true, timeout: 5000 })
    const read = (pragma: string): unknown => Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]
    if (read('application_id') !== applicationId) throw new Error(`${file} is not a Pillarbox database.`)
    mustBeCurrent(file, Number(read('user_version')), knownVersion())
    const damage = damageIn(database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string })
    if (damage !== null) throw new Error(`${file} is damaged: ${damage}. Restore a backup.`)
  } catch (error) {
    throw refused(`${(error as Error).message} Nothing was changed.`, 'database_unavailable', error)
  }
}
