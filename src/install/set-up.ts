import { chmodSync, chownSync, lchownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Journal } from './journal.ts'
import type { Places } from './places.ts'
import { findUser, makeUser, type Owner, serviceUser } from './service-user.ts'
import { commandText } from './units.ts'

/** Creates the empty directories of a box. */
export function makeFolders(places: Places, journal: Journal): void {
  journal.filled(places.data, 0o700)
  journal.filled(places.keys, 0o700)
  if (places.backups !== undefined) journal.folder(places.backups, 0o700)
}

/** Writes the unit files, and for a system service the administrator's command. */
export function installUnits(places: Places, units: readonly [string, string][], journal: Journal): void {
  for (const [file, text] of units) journal.put(file, text, 0o644)
  if (places.command === undefined) return
  journal.put(places.command, commandText(places.config), 0o755)
}

/** Creates the user of a system service, and sets the owner of its directories. */
export function handOver(places: Places, written: readonly string[], journal: Journal): Owner {
  const known = findUser()
  if (!known) journal.user(serviceUser)
  const owner = known ?? makeUser(places.sysusers)
  for (const folder of [places.data, places.keys, places.backups]) if (folder !== undefined) give(folder, owner)
  // readable by the box, writable by root alone
  for (const file of written) {
    chownSync(file, 0, owner.gid)
    chmodSync(file, 0o640)
  }
  return owner
}

// only root has written here so far: there can be no foreign link
function give(path: string, { uid, gid }: Owner): void {
  lchownSync(path, uid, gid)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.name === 'lost+found') continue
    if (entry.isDirectory()) give(join(path, entry.name), { uid, gid })
    else lchownSync(join(path, entry.name), uid, gid)
  }
}
