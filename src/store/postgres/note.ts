import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeTarget, type PostgresTarget } from './target.ts'

/** The file in a data directory that says that its database is elsewhere. */
const name = 'postgresql.txt'

/** The sentence of a data directory whose database is on a server of PostgreSQL; undefined for others. */
export function databaseElsewhere(directory: string): string | undefined {
  const file = join(directory, name)
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}

/** Notes in the data directory that its database is this one. */
export function notePostgres(directory: string, target: PostgresTarget): void {
  const text = sentenceOf(target)
  if (databaseElsewhere(directory) !== text) writeFileSync(join(directory, name), `${text}\n`, { mode: 0o600, flush: true })
}

/** Removes that note. */
export function forgetPostgres(directory: string): void {
  rmSync(join(directory, name), { force: true })
}

/** True if the data directory notes this database. */
export function isNoted(directory: string, target: PostgresTarget): boolean {
  return databaseElsewhere(directory) === sentenceOf(target)
}

/** The file that becomes the database of a data directory once all of its data was moved there. */
export function movingFile(directory: string): string {
  return join(directory, 'pillarbox.db.moving')
}

/** Throws an Error when the settings name another kind of database than the one that the data directory belongs to. */
export function requireOneDatabase(directory: string, target: PostgresTarget | undefined): void {
  const elsewhere = databaseElsewhere(directory)
  if (target === undefined && elsewhere !== undefined) {
    const moving = existsSync(movingFile(directory))
      ? ' It was not moved to SQLite as a whole: run pillarbox move --to sqlite again, which goes on.'
      : ''
    throw new Error(`${elsewhere}${moving} Set database.url; nothing was changed.`)
  }
  const file = join(directory, 'pillarbox.db')
  // the file of a box that was moved to PostgreSQL may stay
  if (target !== undefined && elsewhere === undefined && existsSync(file))
    throw new Error(
      `${directory} has a database of its own, ${file}. Move it with pillarbox move, remove database.url, or set another data_dir; nothing was changed.`,
    )
}

function sentenceOf(target: PostgresTarget): string {
  return `The data of this box is in ${describeTarget(target)}, on PostgreSQL.`
}
