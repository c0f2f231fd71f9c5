import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeTarget, type PostgresTarget } from '../../config/database/postgres-url.ts'

/** The file in a data directory that says that its database is elsewhere. */
const name = 'postgresql.txt'

/** The sentence of a data directory whose database is on a server of PostgreSQL; undefined for others. */
export function databaseElsewhere(directory: string): string | undefined {
  const file = join(directory, name)
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}

/** Notes in the data directory that its database is this one. */
export function notePostgres(directory: string, target: PostgresTarget): void {
  const text = `The data of this box is in ${describeTarget(target)}, on PostgreSQL.\n`
  if (databaseElsewhere(directory) !== text.trim()) writeFileSync(join(directory, name), text, { mode: 0o600 })
}

/** Throws an Error when the settings name another kind of database than the one that the data directory belongs to. */
export function requireOneDatabase(directory: string, target: PostgresTarget | undefined): void {
  const elsewhere = databaseElsewhere(directory)
  if (target === undefined && elsewhere !== undefined) throw new Error(`${elsewhere} Set database.url; nothing was changed.`)
  const file = join(directory, 'pillarbox.db')
  if (target !== undefined && existsSync(file))
    throw new Error(
      `${directory} has a database of its own, ${file}. Remove database.url, or set another data_dir; nothing was changed.`,
    )
}
