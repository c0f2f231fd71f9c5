import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { makeKey, type SealedColumn } from '../../core/seal/seal.ts'
import { knownVersion } from '../../store/migrate.ts'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import { BackupArchive } from './archive/archive.ts'
import { diskFault, refused } from './faults.ts'
import { inspectDatabase, inspectState, requireKnownVersion } from './inspect.ts'
import { type KeyPlace, masterKeyOf } from './key-files.ts'
import { entryNames, type Manifest } from './archive/manifest.ts'
import { type Owner, reserved, RestoreTarget } from './place.ts'
import type { RestoreServer } from './restore-server.ts'
import { type KeyFiles, keysContext, openKeys } from './sealed-keys.ts'
import { masterKeyName, value, withDatabase } from './snapshot.ts'
import { unpack } from './unpack.ts'
import { bringUp, masterKeyIn, mustOpen } from './verify.ts'

export interface RestoreInput extends KeyPlace {
  file: string
  data_dir: string
  /** The empty database of PostgreSQL that the box gets. */
  database?: PostgresTarget | undefined
  /** True if several boxes are to use that database. */
  several?: boolean
  passphrase?: string | undefined
  /** A master key file that was kept elsewhere. */
  master_key?: string | undefined
  without_keys?: boolean
  /** The encrypted columns; only called with `without_keys`. */
  columns: () => Promise<readonly SealedColumn[]>
}

export interface RestoredBox {
  data_dir: string
  keys_dir: string
  manifest: Manifest
  /** The schema version after migration. */
  database_version: number
  keys: 'backup' | 'given' | 'there' | 'new'
  /** The number of dropped values by `table.column`. */
  lost: Record<string, number>
  /** Undelivered messages at the time of the backup, by kind: they are sent once the box starts. */
  waiting: Record<string, number>
}

/** Restores a box from a backup into an empty directory: completely or not at all. Throws Fault. */
export async function restoreBackup(input: RestoreInput, signal?: AbortSignal): Promise<RestoredBox> {
  const archive = await BackupArchive.open(input.file)
  requireKnownVersion(archive)
  mustHaveKey(archive, input)
  const given = await masterKeyIn(archive, input)
  await archive.check(signal)
  const state = await inspectState(archive)
  const server = input.database && (await openServer(input.database, archive))
  let place: RestoreTarget
  try {
    place = new RestoreTarget(input.data_dir, 'state.json')
  } catch (error) {
    await server?.close()
    throw error
  }
  const keyPlaces: RestoreTarget[] = []
  try {
    const file = await unpack(archive, place.draft, signal)
    await inspectDatabase(archive, file)
    signal?.throwIfAborted()
    if (given) mustOpen(archive, file, given)
    const keys = await keysFor(archive, file, input)
    bringUp(archive, file)
    const lost = keys.lost ? dropUnreadable(file, await input.columns()) : {}
    const waiting = waitingIn(file)
    await server?.fill(file, place.draft, input.several === true ? state : undefined, signal)
    signal?.throwIfAborted()
    const owner = ownerOf(input.data_dir)
    if (keys.write) keyPlaces.push(placedKeys(input.keys_dir, keys.write))
    for (const one of keyPlaces) one.adopt(owner)
    place.adopt(owner)
    const { data_dir, keys_dir } = input
    return { data_dir, keys_dir, manifest: archive.manifest, database_version: knownVersion(), keys: keys.from, lost, waiting }
  } catch (error) {
    place.abandon()
    // a box that started there meanwhile has encrypted under them
    if (RestoreTarget.isFree(input.data_dir)) for (const one of keyPlaces) one.abandon()
    signal?.throwIfAborted()
    throw diskFault(error, `${input.data_dir} could not be restored`)
  } finally {
    await server?.close()
  }
}

async function openServer(target: PostgresTarget, archive: BackupArchive): Promise<RestoreServer> {
  // with the driver, which boxes on SQLite do not need
  const { RestoreServer: Server } = await import('./restore-server.ts')
  return Server.open(target, archive.manifest.box_id)
}

/** Checks the key before the long steps. */
function mustHaveKey({ file, manifest }: BackupArchive, input: RestoreInput): void {
  if (input.passphrase !== undefined || input.master_key !== undefined || input.without_keys || existsSync(usedKey(input))) return
  const holds =
    manifest.keys === 'sealed'
      ? `${file} contains encrypted keys: add --passphrase-file, the file with their passphrase.`
      : `${file} contains no keys: add --master-key, the file of the box's master key (master.key), or put it at ${usedKey(input)}.`
  throw refused(
    `${holds} Without it the one-time passwords, webhook secrets and DKIM keys are lost; to discard them, add --without-keys. Nothing was changed.`,
    'key_needed',
  )
}

/** The path where the box expects its master key. */
function usedKey({ keys_dir, master_key_file }: KeyPlace): string {
  return master_key_file ?? join(keys_dir, 'master.key')
}

/** The master key of the restored box, and the files to write for it. */
async function keysFor(
  archive: BackupArchive,
  file: string,
  input: RestoreInput,
): Promise<{ from: RestoredBox['keys']; write?: KeyFiles | 'new'; lost?: true }> {
  const name = withDatabase(file, { readOnly: true }, masterKeyName)
  const there = existsSync(usedKey(input))
  if (there && name !== null && masterKeyOf(input, name, usedKey(input))) return { from: 'there' }
  if (input.without_keys) return there ? { from: 'there', lost: true } : { from: 'new', write: 'new', lost: true }
  if (there || input.master_key_file !== undefined) {
    throw refused(
      `${usedKey(input)} is not the master key that encrypts ${input.file}, and was not changed. ` +
        'Move it away, or set another directory for the keys (keys_dir); nothing was changed.',
      'wrong_master_key',
    )
  }
  const master = await masterKeyIn(archive, input)
  if (input.master_key !== undefined)
    return { from: 'given', write: [{ name: 'master.key', content: Buffer.from(`${master!.toString('base64')}\n`) }] }
  return {
    from: 'backup',
    write: await openKeys(await archive.text(entryNames.keys), input.passphrase!, keysContext(archive.manifest)),
  }
}

function placedKeys(directory: string, files: KeyFiles | 'new'): RestoreTarget {
  const place = new RestoreTarget(directory, 'master.key')
  try {
    if (files === 'new') makeKey(join(place.draft, 'master.key'))
    else {
      for (const { name, content } of files.filter((file) => !reserved.test(file.name))) {
        const path = join(place.draft, name)
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
        writeFileSync(path, content, { mode: 0o600, flag: 'wx', flush: true })
      }
    }
    return place
  } catch (error) {
    place.abandon()
    throw error
  }
}

/** The owner of the directory, or of its parent. */
function ownerOf(directory: string): Owner {
  return statSync(existsSync(directory) ? directory : dirname(resolve(directory)))
}

function waitingIn(file: string): Record<string, number> {
  const query = `SELECT kind, count(*) AS n FROM deliveries_queue WHERE state IN ('waiting', 'running') GROUP BY kind ORDER BY kind`
  // not read-only: the last connection to close removes the WAL
  const rows = withDatabase(file, {}, (database) => database.prepare(query).all()) as { kind: string; n: number }[]
  return Object.fromEntries(rows.map(({ kind, n }) => [kind, n]))
}

/**
 * Drops the values that are encrypted under a lost master key, so that a box can run with a new one: a nullable value becomes null, and
 * other rows are deleted. Returns the number of lost values by `table.column`.
 */
function dropUnreadable(file: string, columns: readonly SealedColumn[]): Record<string, number> {
  return withDatabase(file, {}, (database) => {
    database.exec('PRAGMA foreign_keys = ON; BEGIN IMMEDIATE')
    const lost = columns.map((declared) => {
      const { table, column, only } = declared
      const where = `${column} IS NOT NULL AND ${only ?? '1'}`
      const count = Number(value(database, `SELECT count(*) FROM ${declared.from ?? table} WHERE ${table}.${where}`))
      const remove = mayBeMissing(database, table, column)
        ? `UPDATE ${table} SET ${column} = NULL WHERE ${where}`
        : `DELETE FROM ${table} WHERE ${where}`
      database.exec(declared.lost ?? remove)
      return [`${table}.${column}`, count] as const
    })
    database.exec('UPDATE box SET master_key_name = NULL; COMMIT')
    // unreadable data is not kept either
    database.exec('VACUUM')
    return Object.fromEntries(lost.filter(([, count]) => count > 0))
  })
}

function mayBeMissing(database: DatabaseSync, table: string, column: string): boolean {
  const row = database.prepare('SELECT "notnull" AS needed FROM pragma_table_info(?) WHERE name = ?').get(table, column)
  return row?.['needed'] === 0
}
