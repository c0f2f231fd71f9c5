import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { prepare } from '../../src/store/migrate.ts'
import { folder } from './folder.ts'

const migrations = fileURLToPath(new URL('../../src/store/migrations/', import.meta.url))

/** A database that was filled before a migration, given by its number (`0036`), and has all migrations now. */
export function upgraded(before: string, fill: (database: DatabaseSync) => void): DatabaseSync {
  const [former, file] = [folder(), join(folder(), 'pillarbox.db')]
  for (const name of readdirSync(migrations)) if (name < before) copyFileSync(join(migrations, name), join(former, name))
  prepare(file, false, former)
  const old = new DatabaseSync(file)
  fill(old)
  old.close()
  prepare(file, true)
  const database = new DatabaseSync(file)
  onTestFinished(() => database.close())
  return database
}
