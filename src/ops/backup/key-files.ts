import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf } from '../../core/seal/master-key.ts'
import { readKey } from '../../core/seal/seal.ts'
import { refused } from './faults.ts'
import type { KeyFiles } from './sealed-keys.ts'

export interface KeyPlace {
  keys_dir: string
  /** A master key file outside of keys_dir. */
  master_key_file?: string | undefined
}

const maxSize = 16 * 1024 * 1024

/**
 * The keys of a box: all files in `keys_dir`, with the one of this database as `master.key`, also during a rotation. `name` is the name of
 * that key; null when nothing is encrypted yet. Throws Fault when it is missing.
 */
export function keyFiles(place: KeyPlace, name: string | null): KeyFiles {
  const files = below(place.keys_dir)
  if (name === null) return files
  const master = masterKeyOf(place, name)
  if (!master) {
    const where = place.master_key_file ?? join(place.keys_dir, 'master.key')
    throw refused(
      `${where} is not the master key that encrypts the database, or cannot be read: a backup with it would be useless. ` +
        'Put the right one there, or leave out --passphrase-file.',
      'wrong_master_key',
    )
  }
  const others = files.filter((file) => !/^master\.key(?:\..*)?$/.test(file.name))
  return [{ name: 'master.key', content: Buffer.from(`${master.toString('base64')}\n`) }, ...others]
}

/** The master key of this name, wherever a rotation left it, or in one file only; undefined when it is not there. */
export function masterKeyOf({ keys_dir, master_key_file }: KeyPlace, name: string, only?: string): Buffer | undefined {
  const places = ['master.key', 'master.key.next', 'master.key.former'].map((file) => join(keys_dir, file))
  const all = master_key_file === undefined ? places : [master_key_file, ...places]
  for (const file of only === undefined ? all : [only]) {
    try {
      // root backs up and restores boxes of other users
      const key = readKey(file, file === master_key_file || process.geteuid?.() === 0)
      if (nameOf(key) === name) return key
    } catch {
      continue
    }
  }
  return undefined
}

function below(directory: string): KeyFiles {
  if (!statSync(directory, { throwIfNoEntry: false })) return []
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    // an unused key of a killed process
    .filter((name) => !/\.[0-9a-f]{12}$/.test(name) && statSync(join(directory, name)).isFile())
    .toSorted()
  const sizes = files.reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
  if (sizes > maxSize) throw refused(`${directory} contains other files than keys (${sizes} bytes): move them away.`, 'not_keys')
  return files.map((name) => ({ name, content: readFileSync(join(directory, name)) }))
}

/** The first line of a passphrase file. Throws Fault when it is empty, or readable by every user. */
export function passphraseIn(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  let text: string
  try {
    const { mode } = statSync(file)
    // systemd grants the service access to credentials by an ACL, which appears as group bits
    if (mode & 0o007) throw new Error(`every user can read it (mode ${(mode & 0o777).toString(8)}); set it to 0600`)
    text = readFileSync(file, 'utf8').split(/\r?\n/)[0]!
  } catch (error) {
    throw refused(`The passphrase was not read from ${file}: ${(error as Error).message}.`, 'no_passphrase', error)
  }
  if (text === '') throw refused(`${file} contains no passphrase: its first line is empty.`, 'no_passphrase')
  return text
}
