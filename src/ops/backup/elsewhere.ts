import { databaseElsewhere } from '../../store/postgres/note.ts'
import { refused } from './faults.ts'

/** Throws Fault when the database of a data directory is on a server: it is backed up there. */
export function mustBeInDirectory(directory: string): void {
  const elsewhere = databaseElsewhere(directory)
  if (elsewhere !== undefined) throw refused(`${elsewhere} ${remedy}`, 'on_postgresql')
}

/** Throws Fault when the settings name a database on a server, into which no backup can be restored. */
export function mustNotNameServer(url: object | undefined): void {
  if (url !== undefined)
    throw refused(`database.url is set, and a backup is restored into SQLite only. ${remedy}`, 'on_postgresql')
}

const remedy =
  'Back it up with pg_dump, with state.json and the key directory beside it, and restore it with pg_restore (docs/data.md).'
