import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { auditHead } from '../../audit/verify.ts'
import { applicationId } from '../../store/migrate.ts'
import { State } from '../../store/state.ts'
import { tombstones } from '../retention/search-index.ts'
import type { Manifest } from './archive/manifest.ts'
import { diskFault, refused } from './faults.ts'

/** The copy of a database, with what is said of it in the manifest. */
export interface Snapshot {
  state: Buffer
  box_id: string
  database_version: number
  database_size: number
  rows: Record<string, number>
  master_key_name: string | null
  audit?: Manifest['audit']
}

/** Puts into the copy what is not in the database; `refers` tells whether the database still refers to an object. */
export type Completion = (copy: string, refers: (object: string) => Promise<boolean>) => Promise<void>

/**
 * Copies the database of a box, running or not, into a new file as of one moment, with `state.json` of the same moment. The copy is rebuilt
 * row by row: it contains nothing deleted, also no words of deleted e-mails in the search index, and a damaged page is reported. It does not
 * block writers. `complete` is called with the copy before it is described.
 */
export async function takeSnapshot(directory: string, copy: string, complete: Completion = async () => {}): Promise<Snapshot> {
  const file = join(directory, 'pillarbox.db')
  for (const needed of [join(directory, 'state.json'), file]) {
    if (!existsSync(needed)) throw refused(`There is no box in ${directory}: ${needed} is missing.`, 'no_box')
  }
  for (let tries = 0; tries < 5; tries += 1) {
    const state = stateOf(directory)
    copyDatabase(file, copy)
    // accounts are in one and their data in the other: both must be of the same moment
    if (!stateOf(directory).equals(state)) continue
    await complete(copy, async (object) => refers(file, object))
    return { state, ...described(file, copy), ...boxOf(directory, state) }
  }
  throw refused(`${join(directory, 'state.json')} changes while it is copied. Try again.`, 'busy')
}

function refers(file: string, object: string): boolean {
  return withDatabase(
    file,
    { readOnly: true, timeout: 30_000 },
    (database) => database.prepare('SELECT 1 FROM blobs WHERE object = ?').get(object) !== undefined,
  )
}

/** The content of `state.json`. */
export function stateOf(directory: string): Buffer {
  return readFileSync(join(directory, 'state.json'))
}

/** Whose box a `state.json` is. Throws Fault when it is none. */
export function boxOf(directory: string, state: Buffer): { box_id: string } {
  try {
    return { box_id: State.parse(JSON.parse(state.toString())).box_id }
  } catch (error) {
    const message = `${join(directory, 'state.json')} is damaged, or of another program: nothing was backed up.`
    throw refused(message, 'no_box', error)
  }
}

function copyDatabase(file: string, copy: string): void {
  rmSync(copy, { force: true })
  // SQLite would make it readable by others
  closeSync(openSync(copy, 'wx', 0o600))
  try {
    withDatabase(file, { readOnly: true, timeout: 30_000 }, (database) => database.prepare('VACUUM INTO ?').run(copy))
    clearSearchIndex(copy)
  } catch (error) {
    const kind = ((error as { errcode?: number }).errcode ?? 0) & 0xff
    // SQLITE_CORRUPT, SQLITE_NOTADB
    if (kind === 11 || kind === 26) {
      throw refused(`${file} is damaged: ${(error as Error).message}. Nothing was backed up.`, 'database_damaged', error)
    }
    throw diskFault(error, `${copy} could not be written`)
  }
}

/** Rewrites the search index of a copy without the words of deleted e-mails, which FTS5 keeps until it merges segments. */
function clearSearchIndex(copy: string): void {
  withDatabase(copy, {}, (database) => {
    const index = value(database, `SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND name = 'emails_search_data'`)
    if (index === 0 || value(database, `SELECT count(*) FROM emails_search_data WHERE ${tombstones}`) === 0) return
    // a copy that is not completed is discarded: it needs no journal
    database.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;
      INSERT INTO emails_search (emails_search) VALUES ('optimize'); PRAGMA incremental_vacuum`)
  })
}

/** What the manifest says of a copied database. */
export function described(file: string, copy: string): Omit<Snapshot, 'state' | 'box_id'> {
  return withDatabase(copy, { readOnly: true }, (database) => {
    const id = value(database, 'PRAGMA application_id')
    if (id !== applicationId) throw refused(`${file} is not a Pillarbox database. Nothing was backed up.`, 'no_box')
    const head = auditHead(database)
    return {
      database_version: Number(value(database, 'PRAGMA user_version')),
      database_size: statSync(copy).size,
      rows: rowsOf(database),
      master_key_name: masterKeyName(database),
      ...(head && { audit: { seq: head.seq, hash: head.hash.toString('hex') } }),
    }
  })
}

/** The number of rows of each table, without those derived for the search index. */
export function rowsOf(database: DatabaseSync): Record<string, number> {
  const tables = database
    .prepare(
      `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name`,
    )
    .all() as { name: string }[]
  return Object.fromEntries(tables.map(({ name }) => [name, Number(value(database, `SELECT count(*) FROM "${name}"`))]))
}

/** Opens a database file for some work. */
export function withDatabase<T>(file: string, options: DatabaseSyncOptions, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file, options)
  try {
    return work(database)
  } finally {
    database.close()
  }
}

/** The name of the master key of the encrypted values; null without one. */
export function masterKeyName(database: DatabaseSync): string | null {
  const known = database.prepare(`SELECT 1 FROM pragma_table_info('box') WHERE name = 'master_key_name'`).get()
  return known ? (value(database, 'SELECT master_key_name FROM box') as string | null) : null
}

/** The first column of the first row. */
export function value(database: DatabaseSync, query: string): unknown {
  return Object.values(database.prepare(query).get() ?? {})[0]
}
