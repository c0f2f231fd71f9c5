import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Places } from './places.ts'

/** Where this program lies. */
export const program = join(import.meta.dirname, '..', '..')

const names = ['pillarbox.service', 'pillarbox-backup.service', 'pillarbox-backup.timer']

/** The units of a box, by the paths of their files. */
export function unitFiles(places: Places): [string, string][] {
  const files: [string, string][] = names.map((name) => [join(places.units, name), fitted(sample(name), places)])
  return [...files, [places.sysusers, fitted(sample('pillarbox.sysusers.conf'), places)]]
}

function sample(name: string): string {
  return readFileSync(join(program, 'systemd', name), 'utf8')
}

/** Whether unit files can name these paths as they are: systemd takes words apart at spaces, and backslashes and quotes mean something. */
export function nameable({ data, keys, config }: Places): boolean {
  return [data, keys, config, program].every((path) => /^[\w./@+:~%,=-]+$/.test(path))
}

/** Ours name the places of a service of the machine; a box elsewhere has others. */
function fitted(text: string, { system, data, keys, config }: Places): string {
  const within = (...folders: string[]): boolean =>
    [data, keys, config, program].some((path) => folders.some((folder) => path.startsWith(`${folder}/`)))
  let own = text
  if (!system) {
    // systemd makes state directories below /var/lib only
    own = own.replaceAll(/^StateDirectory.*\n/gm, '')
    own = own.replaceAll('ReadWritePaths=-/var/backups/pillarbox', `ReadWritePaths=${data} ${keys}`)
  }
  if (within('/home', '/root', '/run/user')) own = own.replaceAll('ProtectHome=yes', 'ProtectHome=no')
  if (within('/tmp', '/var/tmp')) own = own.replaceAll('PrivateTmp=yes', 'PrivateTmp=no')
  return own
    .replaceAll('/var/lib/pillarbox-keys', spelled(keys))
    .replaceAll(/\/var\/lib\/pillarbox(?![-\w])/g, spelled(data))
    .replaceAll('/etc/pillarbox/pillarbox.yaml', spelled(config))
    .replaceAll('/opt/pillarbox', spelled(program))
}

/** `%` begins a specifier in a unit (systemd.unit(5)). */
function spelled(path: string): string {
  return path.replaceAll('%', '%%')
}
