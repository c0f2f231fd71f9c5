import { chmodSync, chownSync, lchownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Journal } from './journal.ts'
import type { Places } from './places.ts'
import { findUser, makeUser, type Owner, serviceUser } from './service-user.ts'
import { commandText } from './units.ts'

/** Makes the directories of a box, empty. */
export function makeFolders(places: Places, journal: Journal): void {
  journal.filled(places.data, 0o700)
  journal.filled(places.keys, 0o700)
  if (places.backups !== undefined) journal.folder(places.backups, 0o700)
}

/** Writes the unit files, and of a service of the machine the command that knows its settings. */
export function installUnits(places: Places, units: readonly [string, string][], journal: Journal): void {
  for (const [file, text] of units) journal.put(file, text, 0o644)
  if (places.command === undefined) return
  journal.put(places.command, commandText(places.config), 0o755)
}

/** Gives a service of the machine its user, and the user what is its own. */
export function handOver(places: Places, written: readonly string[], journal: Journal): Owner {
  const known = findUser()
  if (!known) journal.user(serviceUser)
  const owner = known ?? makeUser(places.sysusers)
  for (const folder of [places.data, places.keys, places.backups]) if (folder !== undefined) give(folder, owner)
  // read by the box, changed by root alone
  for (const file of written) {
    chownSync(file, 0, owner.gid)
    chmodSync(file, 0o640)
  }
  return owner
}

// only root has been here so far: no link can lead elsewhere
function give(path: string, { uid, gid }: Owner): void {
  lchownSync(path, uid, gid)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.name === 'lost+found') continue
    if (entry.isDirectory()) give(join(path, entry.name), { uid, gid })
    else lchownSync(join(path, entry.name), uid, gid)
  }
}
