import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { trimEnd } from './text.ts'

/** Settings of the systemd unit that runs the box (systemd.exec(5)). */
interface ServiceUnit {
  /** The unit file and its drop-ins, in the order in which they are read. */
  files: string[]
  /** A name, or an id in digits; undefined for root. */
  user: string | undefined
  /** True if it may listen at ports below 1024 under any user. */
  lowPorts: boolean
  /** The file passed as the credential `master.key`. */
  masterKey: string | undefined
}

/** The directories of units; the first one that has the unit wins (systemd.unit(5)). */
const folders = ['/etc/systemd/system', '/run/systemd/system', '/usr/local/lib/systemd/system', '/usr/lib/systemd/system']

const unit = 'pillarbox.service'

/** Paths of credentials of the system or of a user (systemd.exec(5), CREDENTIALS). */
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

/** The unit, then the drop-ins of `systemctl edit`. */
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

/** The values of a setting that may be given more than once; an empty value clears those before. */
function listed(settings: readonly [string, string][], key: string): string[] {
  return settings.reduce<string[]>((values, [one, value]) => {
    if (one !== key) return values
    return value === '' ? [] : [...values, value]
  }, [])
}

function whole(path: string): string {
  return existsSync(path) ? realpathSync(path) : trimEnd(path, '/')
}

/**
 * The file from which the box reads its master key: the source of the systemd credential if there is one, else the file that the settings
 * name, else `master.key` in the directory of keys. The credential itself is in memory and goes when the service stops.
 */
export function masterKeySource(box: { data_dir: string; keys_dir: string; master_key_file?: string | undefined }): string {
  const { data_dir, keys_dir, master_key_file } = box
  if (master_key_file !== undefined && !credential.test(master_key_file)) return master_key_file
  return serviceUnit(data_dir)?.masterKey ?? join(keys_dir, 'master.key')
}

/**
 * Sets the process name that `ps -o comm`, `ss -p` and `top` show, of which Linux keeps 15 bytes (proc_pid_comm(5)); it would be `MainThread`.
 * Unlike `process.title` this leaves the command line as it is.
 */
export function nameProcess(name: string): void {
  try {
    writeFileSync('/proc/self/comm', name)
  } catch {
    // a container may hide /proc: the name is for people only
  }
}
