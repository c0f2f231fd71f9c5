import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Places } from './places.ts'

/** Why a box cannot be set up at these paths, and an error code; undefined when it can. Existing files are never overwritten. */
export function refusal(places: Places, unitFiles: readonly string[]): [message: string, code: string] | undefined {
  const { data, keys, config, passphrase } = places
  for (const folder of [data, keys]) {
    const isOther = existsSync(folder) && !lstatSync(folder).isDirectory()
    if (isOther) return [`${folder} exists and is not a directory.`, 'not_a_directory']
  }
  if (existsSync(join(data, 'state.json')) || existsSync(join(data, 'pillarbox.db'))) {
    return [`There is a box in ${data} already. Nothing was changed; use --data for another one.`, 'box_exists']
  }
  if (existsSync(config)) {
    return [`${config} exists already. Nothing was changed; move it away, or use --config for another file.`, 'config_exists']
  }
  if (existsSync(passphrase)) {
    const advice = 'Nothing was changed; move it away, or use --config for a file in another directory.'
    return [`${passphrase} exists already, and backups of an earlier box may need it. ${advice}`, 'passphrase_exists']
  }
  const strange = entries(data)
  if (strange.length > 0) {
    const some = `${strange.slice(0, 3).join(', ')}${strange.length > 3 ? ', …' : ''}`
    return [`${data} is not empty (${some}). Nothing was changed; use --data for another one.`, 'not_empty']
  }
  if (entries(keys).length > 0) {
    const message = `${keys} contains the keys of an earlier box, whose backups may need them. Nothing was changed; move it away.`
    return [message, 'keys_exist']
  }
  if (places.packaged === true) return undefined
  const unit = unitFiles.find((file) => existsSync(file))
  if (unit !== undefined) {
    return [`${unit} exists already. Nothing was changed; remove it, or use --units for another directory.`, 'unit_exists']
  }
  if (places.command !== undefined && existsSync(places.command)) {
    return [`${places.command} exists already. Nothing was changed; move it away.`, 'command_exists']
  }
  return undefined
}

function entries(folder: string): string[] {
  // what a new file system has
  return existsSync(folder) ? readdirSync(folder).filter((name) => name !== 'lost+found') : []
}
