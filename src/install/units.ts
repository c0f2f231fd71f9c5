import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Places } from './places.ts'

/** The path of this program: of an unpacked release, by the symbolic link beside it that an upgrade switches, if there is one. */
export const program = byLink(join(import.meta.dirname, '..', '..'))

function byLink(directory: string): string {
  const link = join(dirname(directory), 'pillarbox')
  return existsSync(link) && realpathSync(link) === directory ? link : directory
}

const names = ['pillarbox.service', 'pillarbox-backup.service', 'pillarbox-backup.timer']

/** The paths of the Debian package for units, user and command of the system service (file-hierarchy(7)). */
export const packaged = {
  units: '/usr/lib/systemd/system',
  sysusers: '/usr/lib/sysusers.d/pillarbox.conf',
  command: '/usr/bin/pillarbox',
}

export function unitFiles(places: Places, path = program): [string, string][] {
  const files: [string, string][] = names.map((name) => [join(places.units, name), fitted(sample(name), places, path)])
  return [...files, [places.sysusers, fitted(sample('pillarbox.sysusers.conf'), places, path)]]
}

/** The administrator's command: a script with the path of the settings. */
export function commandText(config: string, path = program): string {
  return `#!/bin/sh
# The command line for the box of this machine.
PILLARBOX_CONFIG=\${PILLARBOX_CONFIG:-'${config.replaceAll("'", `'\\''`)}'}
export PILLARBOX_CONFIG
exec '${path.replaceAll("'", `'\\''`)}/bin/pillarbox' "$@"
`
}

/**
 * The paths of a system service; where the installed package's units, user and command equal those that `init` would write, they are used
 * and none are written.
 */
export function withPackage(places: Places): Places {
  if (!places.system) return places
  const own = { ...places, ...packaged, packaged: true }
  const files = [...unitFiles(own), [own.command, commandText(own.config)] as const]
  return files.every(([file, text]) => existsSync(file) && readFileSync(file, 'utf8') === text) ? own : places
}

function sample(name: string): string {
  return readFileSync(join(program, 'systemd', name), 'utf8')
}

/** True if unit files can contain these paths unescaped: systemd splits at spaces, and interprets backslashes and quotes. */
export function nameable({ data, keys, config }: Places): boolean {
  return [data, keys, config, program].every((path) => /^[\w./@+:~%,=-]+$/.test(path))
}

/** Adapts the units of a system service to the paths of another box. */
function fitted(text: string, { system, data, keys, config }: Places, path: string): string {
  const within = (...folders: string[]): boolean =>
    [data, keys, config, path].some((one) => folders.some((folder) => one.startsWith(`${folder}/`)))
  let own = text
  if (!system) {
    // systemd creates state directories below /var/lib only
    own = own.replaceAll(/^StateDirectory.*\n/gm, '')
    own = own.replaceAll('ReadWritePaths=-/var/backups/pillarbox', `ReadWritePaths=${data} ${keys}`)
  }
  if (within('/home', '/root', '/run/user')) own = own.replaceAll('ProtectHome=yes', 'ProtectHome=no')
  if (within('/tmp', '/var/tmp')) own = own.replaceAll('PrivateTmp=yes', 'PrivateTmp=no')
  return own
    .replaceAll('/var/lib/pillarbox-keys', spelled(keys))
    .replaceAll(/\/var\/lib\/pillarbox(?![-\w])/g, spelled(data))
    .replaceAll('/etc/pillarbox/pillarbox.yaml', spelled(config))
    .replaceAll('/opt/pillarbox', spelled(path))
}

/** `%` starts a specifier in a unit (systemd.unit(5)). */
function spelled(path: string): string {
  return path.replaceAll('%', '%%')
}
