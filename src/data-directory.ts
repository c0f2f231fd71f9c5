import { existsSync, mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import type { Basis } from './basis.ts'
import type { Config } from './config.ts'
import { type Clock, iso } from './core/clock.ts'
import { Fault, storageFull } from './core/fault.ts'
import { MasterKey } from './core/seal/master-key.ts'
import type { PostgresOptions } from './store/postgres/database.ts'
import type { PostgresTarget } from './store/postgres/target.ts'
import type { Database } from './store/database.ts'
import { commitMetrics, fileMetrics, serverMetrics, spaceMetrics } from './store/metrics.ts'
import { notePostgres, requireOneDatabase } from './store/postgres/note.ts'
import { Keyring } from './store/keyring.ts'
import { DirectoryLock } from './store/lock.ts'
import { freeBytes, mustBeNoRestore, Newer, type Obstacle } from './store/files.ts'
import { type MigrationTest, prepare } from './store/migrate.ts'
import { finishRewrite } from './store/rewrite.ts'
import { existingPart, formatBytes, Space } from './store/space.ts'
import { asFault } from './store/sqlite/failures.ts'
import { SqliteDatabase } from './store/sqlite/database.ts'
import { type OperatorState, type State, StateFile } from './store/state.ts'
import { newId } from './core/ids.ts'

/** The opened data directory, locked by this process until it is closed. */
export interface DataDirectory {
  state: OperatorState
  database: Database
  keyring: Keyring
  space: Space
  close(): Promise<void>
}

interface DirectoryDeps extends Pick<Basis, 'log' | 'clock' | 'metrics'> {
  config: Config
  testing?: DirectoryTest | undefined
  /** True if no other box may have the database open meanwhile. */
  exclusive?: boolean | undefined
}

/** Lets tests migrate by copy, spare short-lived boxes the thread of the first checkpoint, and run all work twice. */
export interface DirectoryTest extends MigrationTest {
  /** Milliseconds from a write to the checkpoint that it starts. */
  checkpointDelay?: number
  /** Runs the work of every transaction twice (`SqliteOptions`). */
  twice?: boolean
  /** Options of the database on PostgreSQL: several boxes on one, which stop sooner. */
  postgres?: Pick<PostgresOptions, 'shared' | 'heartbeat'>
}

/**
 * Opens the data directory: locked, checked, migrated. Throws a sentence when it is in use, damaged or newer than this program; what is
 * there is never written over. Throws Fault `storage_full` when the disk has no space to open or create it.
 */
export async function openDirectory({ config, log, clock, metrics, testing, exclusive }: DirectoryDeps): Promise<DataDirectory> {
  let step: Obstacle = 'directory'
  let lock: DirectoryLock | undefined
  let database: Database | undefined
  const close = async (): Promise<void> => {
    await database?.close()
    lock?.release()
  }
  try {
    mustBeNoRestore(config.data_dir)
    requireFreeSpace(config)
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
    lock = new DirectoryLock(config.data_dir)
    const storeLog = log.child({ part: 'store' })
    const space = new Space(config.data_dir, config.min_free, { log: storeLog })
    // before anything is written: the reserve may have to be released
    await space.check()
    lock.note()
    const { url } = config.database
    requireOneDatabase(config.data_dir, url)
    step = 'state'
    const state = await StateFile.open(join(config.data_dir, 'state.json'), () => freshState(config, clock))
    step = 'server'
    const several = url !== undefined && (config.database.several || testing?.postgres?.shared === true)
    if (several) await adoptShared(url, state)
    step = 'master_key'
    const key = new MasterKey(config.keys_dir, config.master_key_file)
    key.read(state.data.database_created)
    step = url === undefined ? 'database' : 'server'
    const store = { config, log: storeLog, clock, metrics, testing, exclusive, several, state, space, lock }
    database = url === undefined ? await openSqlite(store) : await openPostgres(url, store)
    step = 'master_key'
    const keyring = await Keyring.open(database, key)
    spaceMetrics(metrics, space)
    step = 'state'
    const document = url === undefined ? state : await documentOf(database, state)
    return { state: document, database, keyring, space, close }
  } catch (error) {
    await close()
    throw explainFailure(!(error instanceof Fault) && isFull(error) ? fullDisk(config.data_dir, error) : error, step)
  }
}

interface Store extends Pick<DirectoryDeps, 'config' | 'log' | 'clock' | 'metrics' | 'testing' | 'exclusive'> {
  several: boolean
  state: StateFile
  space: Space
  lock: DirectoryLock
}

async function openSqlite({ config, log, metrics, testing, state, space }: Store): Promise<Database> {
  const file = join(config.data_dir, 'pillarbox.db')
  const migrate = testing?.prepare ?? prepare
  migrate(file, state.data.database_created)
  finishRewrite(file, log)
  await noteCreated(state)
  const database = await SqliteDatabase.open(file, log, {
    watch: commitMetrics(metrics),
    checkpointDelay: testing?.checkpointDelay,
    twice: testing?.twice,
  })
  space.onReserveReleased((bytes) => database.reserveLog(bytes))
  fileMetrics(metrics, file)
  return database
}

async function openPostgres(
  target: PostgresTarget,
  { config, log, clock, metrics, testing, exclusive, several, state, lock }: Store,
): Promise<Database> {
  // its driver takes 25 ms and nine megabytes, and most boxes are on SQLite
  const [{ preparePostgres }, { PostgresDatabase }] = await Promise.all([
    import('./store/postgres/prepare.ts'),
    import('./store/postgres/database.ts'),
  ])
  await preparePostgres(target, state.data.database_created, { directory: lock.name })
  notePostgres(config.data_dir, target)
  await noteCreated(state)
  const database = await PostgresDatabase.open(target, log, {
    watch: commitMetrics(metrics),
    twice: testing?.twice,
    directory: lock.name,
    name: `${hostname()} (${resolve(config.data_dir)})`,
    clock,
    exclusive,
    ...testing?.postgres,
    shared: several,
  })
  serverMetrics(metrics, () => database.size())
  return database
}

/** Takes over the document of the boxes that have the database open, where there are some: this one is then one of them. */
async function adoptShared(target: PostgresTarget, state: StateFile): Promise<void> {
  const { sharedDocument } = await import('./store/postgres/prepare.ts')
  const document = await sharedDocument(target)
  if (document === undefined) return
  const { requireSameBox, stateOf } = await import('./store/postgres/shared-state.ts')
  const shared = stateOf(document)
  requireSameBox(state, shared)
  await state.replace(shared)
}

/** The document of a box on a server: a row of several boxes, which this one takes over once it has the database alone. */
async function documentOf(database: Database, state: StateFile): Promise<OperatorState> {
  const { leaveSeveral, SharedState } = await import('./store/postgres/shared-state.ts')
  if (database.several) return SharedState.open(database, state)
  await leaveSeveral(database, state)
  return state
}

/** From now on a missing or empty database is an error. */
async function noteCreated(state: StateFile): Promise<void> {
  if (!state.data.database_created) await state.update((document) => void (document.database_created = true))
}

/** Adds the obstacle to an error. */
function explainFailure(error: unknown, step: Obstacle): unknown {
  if (!(error instanceof Error)) return error
  const obstacle: Obstacle =
    error instanceof Newer ? 'program' : error instanceof Fault && error.code === 'storage_full' ? 'room' : step
  return Object.assign(error, { obstacle })
}

/** The free space in bytes that creating or opening a box needs. */
const minFreeSpace = 16 * 1024 * 1024

/** Throws when the disk has no space for a new box, before anything is created. */
function requireFreeSpace({ data_dir }: Config): void {
  if (existsSync(join(data_dir, 'state.json'))) return
  const free = freeAt(data_dir)
  if (free >= minFreeSpace) return
  const message = `A new box needs ${formatBytes(minFreeSpace)}, and the disk of ${data_dir} has ${formatBytes(free)} free. Free space, or set another data_dir.`
  throw storageFull(undefined, message)
}

function fullDisk(directory: string, cause: unknown): Fault {
  const free = formatBytes(freeAt(directory))
  return storageFull(
    cause,
    `The disk of ${directory} is full (${free} free), and a box cannot be opened without some free space: free ${formatBytes(minFreeSpace)}, and start again. No data was lost.`,
  )
}

/** True if the cause is a full disk or an exhausted quota. */
function isFull(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { code } = one as NodeJS.ErrnoException
    const fault = asFault(one)
    if (code === 'ENOSPC' || code === 'EDQUOT' || (fault instanceof Fault && fault.code === 'storage_full')) return true
  }
  return false
}

function freeAt(directory: string): number {
  return freeBytes(existingPart(resolve(directory)))
}

/** The state of a new box. Throws an Error with a readable message when there is a database without state.json, which names the accounts. */
function freshState(config: Config, clock: Clock): State {
  const database = join(config.data_dir, 'pillarbox.db')
  if (existsSync(database)) {
    throw new Error(`state.json is missing, although ${database} exists. Restore it from a backup: it names the accounts.`)
  }
  const created_at = iso(clock.now())
  const account = { id: newId('acct'), name: config.account.name, created_at }
  return {
    version: 1,
    box_id: newId('acct').slice(5),
    created_at,
    database_created: false,
    first_key_shown: false,
    accounts: [account],
  }
}
