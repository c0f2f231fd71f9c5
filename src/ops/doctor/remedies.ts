import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../../core/fault.ts'
import { obstacleOf } from '../../store/files.ts'
import { existingPart } from '../../store/space.ts'
import { quoted } from './check.ts'

interface Places {
  data_dir: string
  keys_dir: string
  /** The master key file outside of the key directory. */
  master_key: string
}

/** Runs the doctor as root, which can run every command below and switch to the box's user. */
export const asRoot = 'As root: pillarbox doctor'

/** Verifies that the data of a box can be copied completely, running or not. */
export const proof = 'pillarbox backup FILE && pillarbox verify FILE'

/** The fix for a box that could not be opened, by its error; commands are for root. */
export function opening(error: unknown, places: Places): string {
  const denied = using([places.data_dir, places.keys_dir])
  if (denied !== undefined) return denied
  const previous = join(places.data_dir, 'state.json.previous')
  switch (obstacleOf(error)) {
    case 'state':
      return existsSync(previous)
        ? `cp -p ${quoted(previous)} ${quoted(join(places.data_dir, 'state.json'))}`
        : restoring(places.data_dir)
    case 'master_key':
      return lent(places) ?? replacing(places.master_key)
    case 'database':
      return `Try ${proof}\n${restoring(places.data_dir)}`
    case 'room':
      return freeingSpace(places.data_dir)
    default:
      return 'Correct it as the message says.'
  }
}

/** The fix for a master key that is readable by other users; undefined for other problems. */
function lent({ data_dir, keys_dir, master_key }: Places): string | undefined {
  const key = statSync(master_key, { throwIfNoEntry: false })
  if (key === undefined) return undefined
  // the box runs as the owner of its data, and as root only by mistake if the keys belong to another user
  const mistaken = process.geteuid?.() === 0 && key.uid !== 0 && statSync(data_dir).uid === 0
  if (mistaken) return `chown -R ${key.uid}:${key.gid} ${quoted(data_dir)}`
  // a master key file of its own may be readable by the group
  const others = dirname(master_key) === keys_dir ? 0o077 : 0o007
  return (key.mode & others) === 0 ? undefined : `chmod ${others === 0o077 ? 'go=' : 'o='} ${quoted(master_key)}`
}

/** The fix for a store that refuses writes. */
export function writing(error: unknown, dataDirectory: string): string {
  const denied = using([dataDirectory])
  if (denied !== undefined) return denied
  if (error instanceof Fault && error.code === 'storage_full') return freeingSpace(dataDirectory)
  if (error instanceof Fault && error.code === 'storage_busy') {
    return `Stop the program that has it open, shown by: fuser -v ${quoted(join(dataDirectory, 'pillarbox.db'))}`
  }
  return 'Check the kernel log for disk errors (dmesg), then restart the box.'
}

/** The fix for a full disk; the box then continues by itself. */
export function freeingSpace(dataDirectory: string): string {
  return `Free space or enlarge the disk; show large directories: du -xh ${quoted(mountOf(existingPart(dataDirectory)))} | sort -h | tail`
}

/** A command for root that makes directories and their contents accessible to this user; undefined when they are. */
function using(folders: readonly string[]): string | undefined {
  const closed = folders.map((folder) => closedAbove(folder)).find((folder) => folder !== undefined)
  if (closed !== undefined) return `chmod o+x ${quoted(closed)}`
  const fixed = folders.find((folder) => refusal(folder) === 'EROFS')
  if (fixed !== undefined) return `mount -o remount,rw ${quoted(mountOf(fixed))}`
  const foreign = folders.filter((folder) => isForeign(folder))
  if (foreign.length > 0) return owning(foreign)
  const shut = folders.filter((folder) => isShut(folder))
  if (shut.length > 0) return `chmod -R u+rwX ${shut.map(quoted).join(' ')}`
  return undefined
}

/** A command that gives directories and their contents to the user of this process. */
export function owning(folders: readonly string[]): string {
  return `chown -R ${process.geteuid?.() ?? 0}:${process.getegid?.() ?? 0} ${folders.map(quoted).join(' ')}`
}

/** A command that copies the master key to where it is expected, with the owner of the directory. */
export function replacing(file: string): string {
  const { uid, gid } = statSync(join(file, '..'), { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 }
  return (
    `With COPY as a copy of it stored elsewhere: install -m 600 -o ${uid} -g ${gid} COPY ${quoted(file)}\n` +
    'Without one: docs/troubleshooting.md, "The master key is lost".'
  )
}

/** Why this user may not access a path, as an error code; undefined when it may. */
function refusal(path: string, mode: number = constants.W_OK): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

/** The parent directory that this user may not enter. */
function closedAbove(path: string): string | undefined {
  const above = dirname(path)
  if (above === path) return undefined
  const higher = closedAbove(above)
  if (higher !== undefined || !existsSync(above)) return higher
  return refusal(above, constants.X_OK) === undefined ? undefined : above
}

/** True if a directory, or its contents, belongs to another user; root may use any. */
function isForeign(folder: string): boolean {
  const me = process.geteuid?.() ?? 0
  if (me === 0 || !existsSync(folder)) return false
  if (statSync(folder).uid !== me) return true
  return within(folder).some((path) => (statSync(path, { throwIfNoEntry: false })?.uid ?? me) !== me)
}

/** True if the owner may not read and write a directory, or its contents. */
function isShut(folder: string): boolean {
  const { R_OK, W_OK, X_OK } = constants
  if (!existsSync(folder)) return false
  if (refusal(folder, R_OK | W_OK | X_OK) === 'EACCES') return true
  return within(folder).some((path) => refusal(path, R_OK | W_OK) === 'EACCES')
}

function within(folder: string): string[] {
  return refusal(folder, constants.R_OK | constants.X_OK) === undefined
    ? readdirSync(folder).map((name) => join(folder, name))
    : []
}

/** The mount of a path (proc_pid_mountinfo(5)). */
function mountOf(path: string): string {
  const real = realpathSync(path)
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replaceAll(/\\(\d{3})/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 8))),
    )
  const above = points.filter((point) => point !== '' && (real === point || real.startsWith(point === '/' ? '/' : `${point}/`)))
  return above.toSorted((one, other) => other.length - one.length)[0] ?? '/'
}

/** A command for root that replaces the data of a stopped box by a backup and keeps the old data beside it. */
export function restoring(dataDirectory: string): string {
  const data = quoted(dataDirectory)
  const damagedCopy = quoted(`${dataDirectory}.damaged`)
  const { uid, gid } = statSync(dataDirectory)
  const own = ['pillarbox.yaml', 'backup.passphrase'].filter((name) => existsSync(join(dataDirectory, name)))
  const copied = own.map((name) => quoted(join(`${dataDirectory}.damaged`, name)))
  const back = copied.length > 0 ? ` && cp -a ${copied.join(' ')} ${data}` : ''
  const settings = own.includes('pillarbox.yaml') ? ` --config ${quoted(join(dataDirectory, 'pillarbox.yaml'))}` : ''
  return (
    'Stop the box, and with FILE as the newest backup that pillarbox verify accepts, as root:\n' +
    `mv ${data} ${damagedCopy} && install -d -m 700 -o ${uid} -g ${gid} ${data}${back} && pillarbox restore FILE --data ${data}${settings}\n` +
    'Then start it. Data newer than the backup is only in the directory that was moved: keep it.'
  )
}
