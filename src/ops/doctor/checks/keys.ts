import { about, newCheck, type Check } from '../check.ts'
import type { BoxContext, OuterContext } from '../context.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { masterKeySource, serviceUnit } from '../../../core/service-unit.ts'
import { replacing } from '../remedies.ts'

/** Checks for a valid bootstrap key in the settings, which has every scope. */
export function bootstrapKey({ settings: { bootstrap_key }, keyOf }: BoxContext): Check {
  return newCheck('bootstrap_key', 'usual', async () => {
    if (bootstrap_key === undefined) return []
    const line = about('bootstrap_key', 'settings')
    const id = await keyOf(bootstrap_key)
    const remove = 'remove bootstrap_key (PILLARBOX_BOOTSTRAP_KEY) from the settings'
    if (id === undefined) return [line.pass('It has been revoked.')]
    const fix = `Create another key (POST /v1/api-keys), then DELETE /v1/api-keys/${id}?keep=true, and ${remove}.`
    return [line.warn('The bootstrap key is still valid with every scope, and stored in the settings.', fix)]
  })
}

/** Checks that the master key is where the next start reads it. */
export function masterKey({ settings: places }: OuterContext): Check {
  return newCheck('data', 'often', async () => {
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
  })
}
