import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { DatabaseAway } from '../../core/fault.ts'
import { capitalized } from '../../core/text.ts'
import { unfinishedCopyOn } from '../copy/postgres-side.ts'
import { mustBeCurrent, mustNotBeNewer } from '../files.ts'
import { Held, locked } from './box-lock.ts'
import { type Connection, connect, sqlState } from './connections.ts'
import { isAway } from './failures.ts'
import { creation, isStandby, requirements, unmetRequirement } from './inspect.ts'
import { documentOn } from './shared-state.ts'
import { describeTarget, type PostgresTarget } from './target.ts'

/** The version of `baseline.sql`. */
const baseline = 60

/** Milliseconds for one migration. */
const timeout = 3600_000

const own = fileURLToPath(new URL('.', import.meta.url))

interface PrepareOptions {
  /** Where the schema is. */
  folder?: string
  /** The locked data directory (`Heartbeat`), of which no other run is alive. */
  directory?: string | undefined
}

/**
 * Checks the database and migrates it to the version of this program, each migration in its own transaction; an empty one gets the baseline. Throws
 * an Error that says what is wrong with it: it is then left unchanged.
 */
export async function preparePostgres(
  target: PostgresTarget,
  expected: boolean,
  { folder = own, directory }: PrepareOptions = {},
): Promise<void> {
  const connection = await reach(target)
  try {
    await check(connection, target)
    await migrate(connection, target, { expected, folder, directory })
  } finally {
    await connection.end().catch(() => {})
  }
}

/** A database that a copy is written to, open with the lock of the box. */
export interface CopyTarget {
  connection: Connection
  /** What an unfinished copy in it is a copy of; undefined where there is none. */
  unfinished: string | undefined
  /** Brings an empty database to the schema of this version. */
  prepare: () => Promise<void>
}

/** Opens a database for a copy to be written. Throws an Error that says what is wrong with it; it is left unchanged. */
export async function openCopyTarget(target: PostgresTarget): Promise<CopyTarget> {
  const connection = await reach(target)
  try {
    await check(connection, target)
    if (!(await locked(connection, 'alone'))) throw new Held(target, 'exclusive')
    const what = capitalized(describeTarget(target))
    const version = await versionOf(connection, what)
    const unfinished = version === undefined ? undefined : await unfinishedCopyOn(connection)
    if (version !== undefined && unfinished === undefined && (await isUsed(connection)))
      throw new Error(`${what} has the data of a box. Name an empty database; nothing was changed.`)
    if (unfinished !== undefined && version !== knownPostgresVersion())
      throw new Error(
        `${what} has an unfinished copy of another version (${version}, this program's is ${knownPostgresVersion()}). Go on with that program, or drop the database and create it anew.`,
      )
    return { connection, unfinished, prepare: () => migrate(connection, target, { expected: false, folder: own, unfinished }) }
  } catch (error) {
    await connection.end().catch(() => {})
    throw error
  }
}

/** Opens the database of a box for a copy to be made of it: `alone` with the lock of the box. Throws an Error when it has another version. */
export async function openCopySource(target: PostgresTarget, alone: boolean): Promise<Connection> {
  const connection = await reach(target)
  try {
    if (alone && !(await locked(connection, 'alone'))) throw new Held(target, 'exclusive')
    const what = capitalized(describeTarget(target))
    const [version, known] = [await versionOf(connection, what), knownPostgresVersion()]
    if (version === undefined) throw new Error(`${what} is empty: there is no box in it.`)
    if ((await unfinishedCopyOn(connection)) !== undefined) throw new Error(unfinishedCopy(what))
    mustBeCurrent(what, version, known)
    return connection
  } catch (error) {
    await connection.end().catch(() => {})
    throw error
  }
}

/** The operator's document that boxes on this database share; undefined where there is none. Throws an Error when the server cannot be used. */
export async function sharedDocument(target: PostgresTarget): Promise<string | undefined> {
  const connection = await reach(target)
  try {
    if (!(await knowsSeveral(connection))) return undefined
    return await documentOn(connection)
  } finally {
    await connection.end().catch(() => {})
  }
}

/** Throws `Newer` when the database was migrated by a newer program since it was prepared. */
export async function requireVersion(connection: Connection, target: PostgresTarget): Promise<void> {
  const what = capitalized(describeTarget(target))
  mustNotBeNewer(what, (await versionOf(connection, what)) ?? 0, knownPostgresVersion())
}

/** True if the database is of a version with several boxes. */
async function knowsSeveral(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query(`SELECT to_regclass('operator_state') IS NOT NULL AS known`)
  return (rows[0] as { known: number }).known === 1
}

/** True if one of several boxes has beaten lately that has no connection now, as after a restart of the server. */
async function othersBeat(connection: Connection, directory: string | undefined): Promise<boolean> {
  if (!(await knowsSeveral(connection))) return false
  const { rows } = await connection.query(
    `SELECT 1 FROM boxes WHERE ($1::text IS NULL OR directory IS DISTINCT FROM $1) AND seen_at > floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 30000
      AND EXISTS (SELECT 1 FROM operator_state)`,
    [directory ?? null],
  )
  return rows.length > 0
}

/** The newest version that this program knows for PostgreSQL. */
export function knownPostgresVersion(folder = own): number {
  return baseline + migrations(folder).length
}

async function reach(target: PostgresTarget): Promise<Connection> {
  try {
    return await connect(target, { timeout })
  } catch (error) {
    const message = `${capitalized(describeTarget(target))} cannot be used: ${reason(error)}.`
    throw isAway(error) ? new DatabaseAway(message, { cause: error }) : new Error(message, { cause: error })
  }
}

/** The driver's message; a refused connection has one for each address. */
function reason(error: unknown): string {
  const { message, errors } = error as Error & { errors?: Error[] }
  const text = message === '' ? (errors ?? []).map((one) => one.message).join(', ') : message
  const hint = sqlState(error) === '3D000' ? ` (${creation})` : ''
  return `${text.replace(/\.$/, '')}${hint}`
}

async function check(connection: Connection, target: PostgresTarget): Promise<void> {
  const { rows } = await connection.query(requirements)
  const problem = unmetRequirement(rows[0])
  if (problem === undefined) return
  const message = `${capitalized(describeTarget(target))} ${problem}`
  throw isStandby(rows[0]) ? new DatabaseAway(message) : new Error(message)
}

interface Migration {
  /** True where the data directory had a database. */
  expected: boolean
  folder: string
  directory?: string | undefined
  unfinished?: string | undefined
}

async function migrate(
  connection: Connection,
  target: PostgresTarget,
  { expected, folder, directory, unfinished }: Migration,
): Promise<void> {
  const what = capitalized(describeTarget(target))
  const known = knownPostgresVersion(folder)
  const version = await versionOf(connection, what)
  if (version === undefined && expected)
    throw new Error(
      `${what} is empty, although this data directory had a database. Restore it, or set the database.url that was set before; nothing was changed.`,
    )
  if (version !== undefined) mustNotBeNewer(what, version, known)
  if (version !== undefined && version < baseline)
    throw new Error(`${what} is damaged: its version is ${version}. Restore it; nothing was changed.`)
  if (version !== undefined && unfinished === undefined && (await unfinishedCopyOn(connection)) !== undefined)
    throw new Error(unfinishedCopy(what))
  if (version !== undefined && unfinished === undefined && !expected && (await isUsed(connection)))
    throw new Error(
      `${what} has the data of a box, but state.json, which names its accounts, is new. Restore that file, or set another database; nothing was changed.`,
    )
  if (version === known) return
  // what another box has open is not changed under it
  const free = await locked(connection, 'alone')
  // another one that was started at the same time may have done it
  if ((await versionOf(connection, what)) === known) return
  if (!free || (await versionOf(connection, what)) !== version || (await othersBeat(connection, directory)))
    throw new Held(target, 'migration')
  if (version === undefined) await run(connection, what, 0, `${folder}baseline.sql`)
  for (const [index, path] of migrations(folder).entries()) {
    const to = baseline + index + 1
    if (to > (version ?? baseline)) await run(connection, what, to - 1, path, `UPDATE schema_version SET version = ${to}`)
  }
}

function unfinishedCopy(what: string): string {
  return (
    `${what} has only a part of a box: pillarbox move or pillarbox restore has not ended. Run the same command again, which goes on; or drop the database. ` +
    'Until then no box starts on it.'
  )
}

/** Undefined when the schema is empty. */
async function versionOf(connection: Connection, what: string): Promise<number | undefined> {
  const { rows } = await connection.query(
    `SELECT count(*) AS tables, coalesce(sum((relname = 'schema_version')::int), 0) AS versions, coalesce(sum((relname = 'audit_chain')::int), 0) AS chains
      FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')`,
  )
  const { tables, versions, chains } = rows[0] as Record<'tables' | 'versions' | 'chains', number>
  if (tables === 0) return undefined
  if (versions === 0 || chains === 0)
    throw new Error(
      `${what} has tables that are not of Pillarbox. Set another database, or an empty schema for the user; nothing was changed.`,
    )
  const version = await connection.query('SELECT version FROM schema_version')
  return (version.rows[0] as { version: number } | undefined)?.version ?? 0
}

/** True once a box was opened on it; a first start that was interrupted leaves an unused one. */
async function isUsed(connection: Connection): Promise<boolean> {
  const { rows } = await connection.query('SELECT 1 FROM box WHERE master_key_name IS NOT NULL')
  return rows.length > 0
}

async function run(connection: Connection, what: string, from: number, path: string, after = ''): Promise<void> {
  try {
    await connection.query('BEGIN')
    await connection.query(readFileSync(path, 'utf8'))
    if (after !== '') await connection.query(after)
    await connection.query('COMMIT')
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => {})
    throw new Error(`${what} stays at version ${from}: the migration ${path} failed (${(error as Error).message}).`, {
      cause: error,
    })
  }
}

/** The paths of `migrations/0061_name.sql`, … in order: those after the baseline. */
function migrations(folder: string): string[] {
  const names = readdirSync(`${folder}migrations`)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .toSorted()
  const misnumbered = names.find((name, index) => Number(name.slice(0, 4)) !== baseline + index + 1)
  if (misnumbered !== undefined) throw new Error(`The migration ${misnumbered} is not numbered in order.`)
  return names.map((name) => `${folder}migrations/${name}`)
}
