import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, lchownSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Journal } from './journal.ts'
import type { Places } from './places.ts'
import { commandText } from './units.ts'

export const serviceUser = 'pillarbox'

export interface Owner {
  uid: number
  gid: number
}

/** The ids of a user (passwd(5)); undefined when there is none. */
export function findUser(name: string = serviceUser): Owner | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}

/** Creates the user of a sysusers.d(5) file, without password and shell. Throws a sentence when the machine has no tool for it. */
function makeUser(sysusers: string): Owner {
  const home = '/var/lib/pillarbox'
  const nologin = '/usr/sbin/nologin'
  if (program('systemd-sysusers')) execFileSync('systemd-sysusers', [sysusers], { stdio: 'pipe' })
  else if (program('useradd')) {
    const words = ['--system', '--user-group', '--no-create-home', '--home-dir', home, '--shell', nologin, serviceUser]
    execFileSync('useradd', words, { stdio: 'pipe' })
  } else {
    throw new Error(
      `Neither systemd-sysusers nor useradd is installed to create the user ${serviceUser}: create it, and try again.`,
    )
  }
  const made = findUser()
  if (!made) throw new Error(`The user ${serviceUser} was created but is not in /etc/passwd.`)
  return made
}

export function removeUser(name: string): void {
  if (program('userdel') && findUser()) execFileSync('userdel', [name], { stdio: 'pipe' })
}

function program(name: string): boolean {
  return ['/usr/bin', '/usr/sbin', '/bin', '/sbin'].some((folder) => existsSync(`${folder}/${name}`))
}

export function makeFolders(places: Places, journal: Journal): void {
  journal.filled(places.data, 0o700)
  journal.filled(places.keys, 0o700)
  if (places.backups !== undefined) journal.folder(places.backups, 0o700)
}

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
