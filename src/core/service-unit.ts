import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { withoutEnd } from './ends.ts'

/** What the systemd unit of a box says of how it is run (systemd.exec(5)). */
export interface ServiceUnit {
  /** Its file, and those that add to it, in the order in which they are read. */
  files: string[]
  /** A name, or an id in digits; undefined for root. */
  user: string | undefined
  /** Whether it may listen at ports below 1024 whoever it runs as. */
  lowPorts: boolean
  /** The file that is handed over as the credential `master.key`. */
  masterKey: string | undefined
}

/** Where units are looked for: the first directory that has one wins (systemd.unit(5)). */
const folders = ['/etc/systemd/system', '/run/systemd/system', '/usr/local/lib/systemd/system', '/usr/lib/systemd/system']

const unit = 'pillarbox.service'

/** What systemd has handed over, of the machine or of a user (systemd.exec(5), CREDENTIALS). */
const credential = /^\/run\/(?:user\/\d+\/)?credentials\//

/** The unit whose working directory is this data directory; undefined when there is none, or it may not be read. */
export function serviceUnit(dataDirectory: string): ServiceUnit | undefined {
  try {
    const files = unitFiles()
    const settings = files.flatMap((file) => settingsIn(readFileSync(file, 'utf8')))
    const last = (key: string): string | undefined => settings.findLast(([one]) => one === key)?.[1] || undefined
    const directory = last('WorkingDirectory')
    if (directory === undefined || whole(directory) !== whole(dataDirectory)) return undefined
    const handed = listed(settings, 'LoadCredential').find((value) => value.startsWith('master.key:'))
    return {
      files,
      user: last('User'),
      lowPorts: listed(settings, 'AmbientCapabilities').some((value) => /(?:^|\s)CAP_NET_BIND_SERVICE(?:\s|$)/.test(value)),
      masterKey: handed?.slice('master.key:'.length),
    }
  } catch {
    return undefined
  }
}

/** The unit, then what `systemctl edit` adds. */
function unitFiles(): string[] {
  const file = folders.map((folder) => join(folder, unit)).find((path) => existsSync(path))
  if (file === undefined) return []
  const additions = folders.toReversed().flatMap((folder) => {
    const beside = join(folder, `${unit}.d`)
    return existsSync(beside) ? readdirSync(beside).map((entry) => join(beside, entry)) : []
  })
  const kept = new Map(additions.filter((path) => path.endsWith('.conf')).map((path) => [basename(path), path]))
  return [file, ...[...kept].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, path]) => path)]
}

function settingsIn(text: string): [key: string, value: string][] {
  const lines = text.replaceAll(/\\\n/g, ' ').split('\n')
  return lines.flatMap((line) => {
    const [, key, value] = /^\s*(\w+)\s*=(.*)/s.exec(line) ?? []
    return key === undefined || value === undefined ? [] : [[key, value.trim().replaceAll('%%', '%')] as [string, string]]
  })
}

/** The values of a setting that may be given more than once: an empty one forgets those before. */
function listed(settings: readonly [string, string][], key: string): string[] {
  return settings.reduce<string[]>((values, [one, value]) => {
    if (one !== key) return values
    return value === '' ? [] : [...values, value]
  }, [])
}

function whole(path: string): string {
  return existsSync(path) ? realpathSync(path) : withoutEnd(path, '/')
}

/**
 * The file from which the master key of a box comes at its start: what systemd hands over, where it has been handed over; else the file that
 * the settings name, else `master.key` in the directory of keys. A credential itself lies in memory, and is gone when the service stops.
 */
export function masterKeySource(box: { data_dir: string; keys_dir: string; master_key_file?: string | undefined }): string {
  const { data_dir, keys_dir, master_key_file } = box
  if (master_key_file !== undefined && !credential.test(master_key_file)) return master_key_file
  return serviceUnit(data_dir)?.masterKey ?? join(keys_dir, 'master.key')
}

/**
 * Gives this process the name that `ps -o comm`, `ss -p` and `top` list, of which Linux keeps 15 bytes (proc_pid_comm(5)); else it is Node's
 * own, `MainThread`. The command line stays as it is, as `process.title` would not let it.
 */
export function nameProcess(name: string): void {
  try {
    writeFileSync('/proc/self/comm', name)
  } catch {
    // a container may hide /proc: the name is for people only
  }
}
