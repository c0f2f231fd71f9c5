import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import type { Clock } from './core/clock.ts'
import type { Log } from './core/log.ts'
import { MasterKey } from './core/master-key.ts'
import type { Metrics } from './core/metrics.ts'
import { freshState } from './first-start.ts'
import { commitFigures, spaceFigures } from './store/figures.ts'
import { Keyring } from './store/keyring.ts'
import { Lock } from './store/lock.ts'
import { prepare } from './store/migrate.ts'
import { mustBeNoRestore } from './store/restoring.ts'
import { Space } from './store/space.ts'
import { SqliteDatabase } from './store/sqlite.ts'
import { StateFile } from './store/state.ts'

/** What a box keeps on disk, held by this process alone until it is closed. */
export interface DataDirectory {
  state: StateFile
  database: SqliteDatabase
  keyring: Keyring
  space: Space
  close(): Promise<void>
}

/**
 * Opens the data directory: locked, checked, migrated. Throws a sentence when it is in use, damaged or newer than this program; what is
 * there is never written over.
 */
export async function openDirectory(config: Config, log: Log, clock: Clock, metrics: Metrics): Promise<DataDirectory> {
  mustBeNoRestore(config.data_dir)
  mkdirSync(config.data_dir, { recursive: true, mode: 0o700 })
  const lock = new Lock(config.data_dir)
  let database: SqliteDatabase | undefined
  const close = async (): Promise<void> => {
    await database?.close()
    lock.release()
  }
  try {
    const file = join(config.data_dir, 'pillarbox.db')
    const state = await StateFile.open(join(config.data_dir, 'state.json'), () => freshState(config, clock, file))
    const key = new MasterKey(config.keys_dir, config.master_key_file)
    key.read(state.data.database_created)
    prepare(file, state.data.database_created)
    if (!state.data.database_created) await state.update((document) => void (document.database_created = true))
    database = await SqliteDatabase.open(file, log.child({ part: 'store' }), { watch: commitFigures(metrics) })
    const keyring = await Keyring.open(database, key)
    const space = new Space(config.data_dir, config.min_free)
    spaceFigures(metrics, file, space)
    return { state, database, keyring, space, close }
  } catch (error) {
    await close()
    throw error
  }
}
