import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { masterKeySource, serviceUnit } from '../../../core/service-unit.ts'
import { about, type Check } from '../check.ts'
import { replacing } from '../remedies.ts'

interface Deps {
  data_dir: string
  keys_dir: string
  master_key_file: string | undefined
}

/** Checks that the master key is where the next start reads it. */
export function masterKey(places: Deps): Check {
  return {
    name: 'data',
    pace: 'often',
    async run() {
      const file = masterKeySource(places)
      // a box that never ran has none yet, and an unreadable directory is not known to be empty
      if (!existsSync(join(places.data_dir, 'state.json')) || !existsSync(join(file, '..'))) return []
      const line = about('data', file)
      if (existsSync(file)) return [line.pass('The master key is present.')]
      const unit = serviceUnit(places.data_dir)
      const next =
        unit?.masterKey === file
          ? `the service cannot be started (status=243/CREDENTIALS: ${unit.files[0]} passes it by LoadCredential)`
          : 'the box cannot be started'
      return [line.fail(`The master key is missing: ${next}.`, replacing(file))]
    },
  }
}
