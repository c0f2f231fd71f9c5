import { readFileSync, statSync } from 'node:fs'
import { refused } from './faults.ts'

/** The first line of a file that holds a passphrase. Throws Fault when there is none, or when everybody can read it. */
export function passphraseIn(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  let text: string
  try {
    const { mode } = statSync(file)
    // systemd lets the service read its credentials by an access list, which shows as bits of the group
    if (mode & 0o007) throw new Error(`everybody can read it (mode ${(mode & 0o777).toString(8)}); set it to 0600`)
    text = readFileSync(file, 'utf8').split(/\r?\n/)[0]!
  } catch (error) {
    throw refused(`The passphrase was not taken from ${file}: ${(error as Error).message}.`, 'no_passphrase', error)
  }
  if (text === '') throw refused(`${file} holds no passphrase: its first line is empty.`, 'no_passphrase')
  return text
}
