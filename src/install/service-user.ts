import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** The user of the system service. */
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
export function makeUser(sysusers: string): Owner {
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
