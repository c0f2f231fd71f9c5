import { dirname, join, resolve } from 'node:path'

interface PlaceOptions {
  data?: string | undefined
  keys?: string | undefined
  config?: string | undefined
  units?: string | undefined
}

/** The paths of a box; all are absolute. */
export interface Places {
  /** A system service with a user of its own; otherwise a box in a directory, run by its owner. */
  system: boolean
  data: string
  keys: string
  config: string
  /** The file with the passphrase of the keys in backups. */
  passphrase: string
  log: string
  units: string
  /** For a system service. */
  backups?: string
  /** The administrator's command. */
  command?: string
  sysusers: string
  /** Units, user and command are installed by a package of the distribution. */
  packaged?: boolean
}

/** Root without a data directory sets up a system service, in the standard directories of Debian. */
export function placesOf({ data, keys, config, units }: PlaceOptions, { root, cwd }: { root: boolean; cwd: string }): Places {
  const system = root && data === undefined
  const at = (path: string): string => resolve(cwd, path)
  if (system) {
    const file = at(config ?? '/etc/pillarbox/pillarbox.yaml')
    return {
      system,
      data: '/var/lib/pillarbox',
      keys: at(keys ?? '/var/lib/pillarbox-keys'),
      config: file,
      passphrase: join(dirname(file), 'backup.passphrase'),
      log: join(dirname(file), 'init.log'),
      units: at(units ?? '/etc/systemd/system'),
      backups: '/var/backups/pillarbox',
      command: '/usr/local/bin/pillarbox',
      sysusers: '/etc/sysusers.d/pillarbox.conf',
    }
  }
  const directory = at(data ?? 'data')
  // beside the data: commands that get only the data directory find their settings in it
  const file = at(config ?? (data === undefined ? 'pillarbox.yaml' : join(directory, 'pillarbox.yaml')))
  const folder = at(units ?? join(directory, 'systemd'))
  return {
    system,
    data: directory,
    keys: at(keys ?? `${directory}-keys`),
    config: file,
    passphrase: join(dirname(file), 'backup.passphrase'),
    log: join(dirname(file), 'init.log'),
    units: folder,
    sysusers: join(folder, 'pillarbox.sysusers.conf'),
  }
}
