import { dirname, join, resolve } from 'node:path'

/** What the operator said of where a box goes. */
export interface PlaceOptions {
  data?: string | undefined
  keys?: string | undefined
  config?: string | undefined
  units?: string | undefined
}

/** Where the things of a box go; all paths are absolute. */
export interface Places {
  /** A service of the machine, with a user of its own; else a box in a directory, which whoever made it runs. */
  system: boolean
  data: string
  keys: string
  /** The settings file. */
  config: string
  log: string
  /** The directory of the unit files. */
  units: string
  /** Of a service of the machine. */
  backups?: string
  /** The command for whoever administers the machine. */
  command?: string
  /** Where systemd reads of users. */
  sysusers: string
  /** Units, user and command belong to a package of the distribution. */
  packaged?: boolean
}

/** Root who says nothing of the data directory sets up a service of the machine, in the directories that Debian has for each thing. */
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
      log: join(dirname(file), 'init.log'),
      units: at(units ?? '/etc/systemd/system'),
      backups: '/var/backups/pillarbox',
      command: '/usr/local/bin/pillarbox',
      sysusers: '/etc/sysusers.d/pillarbox.conf',
    }
  }
  const directory = at(data ?? 'data')
  // beside what it is about: commands that are told of the data directory only find their settings in it
  const file = at(config ?? (data === undefined ? 'pillarbox.yaml' : join(directory, 'pillarbox.yaml')))
  const folder = at(units ?? join(directory, 'systemd'))
  return {
    system,
    data: directory,
    keys: at(keys ?? `${directory}-keys`),
    config: file,
    log: join(dirname(file), 'init.log'),
    units: folder,
    sysusers: join(folder, 'pillarbox.sysusers.conf'),
  }
}
