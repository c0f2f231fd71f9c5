import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Places } from './places.ts'

interface Refusal {
  code: string
  message: string
}

/** Why a box cannot be set up at these paths; undefined when it can. Existing files are never overwritten. */
export function refusal(places: Places, unitFiles: readonly string[]): Refusal | undefined {
  const { data, keys, config } = places
  for (const folder of [data, keys]) {
    if (existsSync(folder) && !lstatSync(folder).isDirectory())
      return no('not_a_directory', `${folder} exists and is not a directory.`)
  }
  if (existsSync(join(data, 'state.json')) || existsSync(join(data, 'pillarbox.db'))) {
    return no('box_exists', `There is a box in ${data} already. Nothing was changed; use --data for another one.`)
  }
  if (existsSync(config)) {
    return no('config_exists', `${config} exists already. Nothing was changed; move it away, or use --config for another file.`)
  }
  const strange = entries(data)
  if (strange.length > 0) {
    const some = strange.slice(0, 3).join(', ')
    return no(
      'not_empty',
      `${data} is not empty (${some}${strange.length > 3 ? ', …' : ''}). Nothing was changed; use --data for another one.`,
    )
  }
  if (entries(keys).length > 0) {
    return no(
      'keys_exist',
      `${keys} contains the keys of an earlier box, whose backups may need them. Nothing was changed; move it away.`,
    )
  }
  if (places.packaged === true) return undefined
  const unit = unitFiles.find((file) => existsSync(file))
  if (unit !== undefined) {
    return no('unit_exists', `${unit} exists already. Nothing was changed; remove it, or use --units for another directory.`)
  }
  if (places.command !== undefined && existsSync(places.command)) {
    return no('command_exists', `${places.command} exists already. Nothing was changed; move it away.`)
  }
  return undefined
}

function no(code: string, message: string): Refusal {
  return { code, message }
}

function entries(folder: string): string[] {
  // what a new file system has
  return existsSync(folder) ? readdirSync(folder).filter((name) => name !== 'lost+found') : []
}
