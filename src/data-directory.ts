import { existsSync, mkdirSync, statfsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from './config.ts'
import type { Clock } from './core/clock.ts'
import { Fault, storageFull } from './core/fault.ts'
import type { Log } from './core/log.ts'
import { MasterKey } from './core/seal/master-key.ts'
import type { Metrics } from './core/metrics.ts'
import { freshState } from './first-start.ts'
import { commitMetrics, spaceMetrics } from './store/metrics.ts'
import { Keyring } from './store/keyring.ts'
import { DirectoryLock } from './store/lock.ts'
import { mustBeNoRestore, Newer, type Obstacle } from './store/files.ts'
import { type MigrationTest, prepare } from './store/migrate.ts'
import { existingPart, formatBytes, Space } from './store/space.ts'
import { asFault } from './store/sqlite/failures.ts'
import { SqliteDatabase } from './store/sqlite/database.ts'
import { StateFile } from './store/state.ts'

/** What a box keeps on disk, held by this process alone until it is closed. */
export interface DataDirectory {
  state: StateFile
  database: SqliteDatabase
  keyring: Keyring
  space: Space
  close(): Promise<void>
}

interface DirectoryDeps {
  config: Config
  log: Log
  clock: Clock
  metrics: Metrics
  testing?: MigrationTest | undefined
}

/**
 * Opens the data directory: locked, checked, migrated. Throws a sentence when it is in use, damaged or newer than this program; what is
 * there is never written over. Throws Fault `storage_full` where there is no room to open it, or for a new one.
 */
export async function openDirectory({ config, log, clock, metrics, testing }: DirectoryDeps): Promise<DataDirectory> {
  let step: Obstacle = 'directory'
  let lock: DirectoryLock | undefined
  let database: SqliteDatabase | undefined
  const close = async (): Promise<void> => {
    await database?.close()
    lock?.release()
  }
  try {
    mustBeNoRestore(config.data_dir)
    mustHaveRoom(config)
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
    lock = new DirectoryLock(config.data_dir)
    const storeLog = log.child({ part: 'store' })
    const space = new Space(config.data_dir, config.min_free, { log: storeLog })
    // before anything is written: what is reserved may have to be let go of
    await space.check()
    lock.note()
    const file = join(config.data_dir, 'pillarbox.db')
    step = 'state'
    const state = await StateFile.open(join(config.data_dir, 'state.json'), () => freshState(config, clock, file))
    step = 'master_key'
    const key = new MasterKey(config.keys_dir, config.master_key_file)
    key.read(state.data.database_created)
    step = 'database'
    const bring = testing?.prepare ?? prepare
    bring(file, state.data.database_created)
    if (!state.data.database_created) await state.update((document) => void (document.database_created = true))
    database = await SqliteDatabase.open(file, storeLog, { watch: commitMetrics(metrics) })
    step = 'master_key'
    const keyring = await Keyring.open(database, key)
    const opened = database
    space.onReserveReleased((bytes) => opened.reserveLog(bytes))
    spaceMetrics(metrics, file, space)
    return { state, database, keyring, space, close }
  } catch (error) {
    await close()
    throw explainFailure(!(error instanceof Fault) && isFull(error) ? fullDisk(config.data_dir, error) : error, step)
  }
}

/** The error, with what it means for whoever mends it. */
function explainFailure(error: unknown, step: Obstacle): unknown {
  if (!(error instanceof Error)) return error
  const obstacle: Obstacle =
    error instanceof Newer ? 'program' : error instanceof Fault && error.code === 'storage_full' ? 'room' : step
  return Object.assign(error, { obstacle })
}

/** What a new box writes before it takes anything, its log, and then some; and what opening one takes at most. In bytes. */
const roomToStart = 16 * 1024 * 1024

/** Throws before anything of a new box is made where it has no room. */
function mustHaveRoom({ data_dir }: Config): void {
  if (existsSync(join(data_dir, 'state.json'))) return
  const free = freeAt(data_dir)
  if (free >= roomToStart) return
  const message = `A new box needs ${formatBytes(roomToStart)}, and the disk of ${data_dir} has ${formatBytes(free)} free. Make room, or set another data_dir.`
  throw storageFull(undefined, message)
}

function fullDisk(directory: string, cause: unknown): Fault {
  const free = formatBytes(freeAt(directory))
  return storageFull(
    cause,
    `The disk of ${directory} is full (${free} free), and a box cannot be opened without some room: make ${formatBytes(roomToStart)} free, and start again. Nothing was lost.`,
  )
}

/** Whether it came of a full disk, or of a quota that is used up. */
function isFull(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { code } = one as NodeJS.ErrnoException
    const fault = asFault(one)
    if (code === 'ENOSPC' || code === 'EDQUOT' || (fault instanceof Fault && fault.code === 'storage_full')) return true
  }
  return false
}

function freeAt(directory: string): number {
  const { bavail, bsize } = statfsSync(existingPart(resolve(directory)))
  return bavail * bsize
}
