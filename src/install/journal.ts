import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** How one thing that was made is unmade. */
type Kind = 'file' | 'folder' | 'filled' | 'user'

const unmake: Record<Kind, (name: string, removeUser: (name: string) => void) => void> = {
  file: (path) => gone(() => rmSync(path)),
  // what else lies in it by now is not ours
  folder: (path) => gone(() => rmdirSync(path)),
  filled: (path) => {
    for (const entry of existsSync(path) ? readdirSync(path) : []) {
      if (entry !== 'lost+found') rmSync(join(path, entry), { recursive: true, force: true })
    }
  },
  user: (name, removeUser) => removeUser(name),
}

const last = 'Finished.'

/**
 * The log of a set-up: what was looked at and what was made, each noted before it is made. By it everything can be unmade, by this process
 * when it fails, or by the next one when this was killed.
 */
export class Journal {
  readonly file: string
  readonly #removeUser: (name: string) => void
  /** Since when lines are kept until the file can be made. */
  #waiting: string[] | undefined = []
  readonly #folders = new Set<string>()

  constructor(file: string, removeUser: (name: string) => void) {
    this.file = file
    this.#removeUser = removeUser
  }

  /** Whether a set-up was begun here and not brought to its end. Throws a sentence when it is under way, or is none of this user's. */
  get unfinished(): boolean {
    if (!existsSync(this.file)) return false
    const text = readFileSync(this.file, 'utf8')
    if (text.trimEnd().endsWith(last)) return false
    if (lstatSync(this.file).uid !== process.getuid?.()) {
      throw new Error(`${this.file} tells of a set-up by another user that was not finished: remove what it names, and it.`)
    }
    const holder = this.#holder(text)
    if (holder > 0 && holder !== process.pid && runs(holder)) {
      throw new Error(`Process ${holder} sets a box up here right now. If it does something else by now, remove ${this.file}.`)
    }
    return true
  }

  /** Whether somebody else than the set-up that was cut short has opened the box that it made, in this data directory. */
  used(data: string): boolean {
    const opened = join(data, 'lock.pid')
    if (!existsSync(opened)) return false
    const another = Number(readFileSync(opened, 'utf8')) !== this.#holder(readFileSync(this.file, 'utf8'))
    // in a container the first process of each is number 1
    return another || statSync(opened).mtimeMs > statSync(this.file).mtimeMs + 60_000
  }

  /** Begins the file; until then lines are kept in memory. Directories on the way to it are made. */
  begin(): void {
    const missing = foldersTo(this.file)
    for (const folder of missing) {
      open(folder, 0o755)
      this.#folders.add(folder)
    }
    writeFileSync(this.file, '', { flag: 'wx', mode: 0o600 })
    const lines = [`begun by process ${process.pid}`, ...(this.#waiting ?? [])]
    this.#waiting = undefined
    for (const line of lines) this.#write(line)
    for (const folder of missing) this.#made('folder', folder)
  }

  note(text: string): void {
    this.#write(text)
  }

  /** Makes a file that must not be there, with the directories on the way to it. Throws when it is. */
  put(path: string, text: string, mode: number): void {
    for (const folder of foldersTo(path)) this.folder(folder, 0o755)
    if (existsSync(path)) throw new Error(`${path} is there already.`)
    this.#made('file', path)
    writeFileSync(path, text, { flag: 'wx', mode })
    chmodSync(path, mode)
  }

  link(path: string, target: string): void {
    this.#made('file', path)
    symlinkSync(target, path)
  }

  /** Makes a directory if it is not there, with those on the way to it. One of somebody else's keeps its mode. */
  folder(path: string, mode: number): void {
    for (const one of [...foldersTo(path), path]) {
      if (existsSync(one)) continue
      this.#made('folder', one)
      open(one, 0o755)
      this.#folders.add(one)
    }
    if (this.#folders.has(path)) chmodSync(path, mode)
  }

  /** The same for one that others fill from now on: all that comes to lie in it is ours. */
  filled(path: string, mode: number): void {
    this.folder(path, mode)
    this.#made('filled', path)
  }

  user(name: string): void {
    this.#made('user', name)
  }

  finish(): void {
    this.#write(last)
  }

  /** Removes all that was made, the log as well; answers where a copy of that lies. */
  undo(): string {
    const text = readFileSync(this.file, 'utf8')
    // a line without its end was cut short by a full disk: what it names may be a part of a name, and was not made
    const lines = text.split('\n').slice(0, -1)
    const made = lines.flatMap((line) => {
      const found = /^\S+ made (file|folder|filled|user) (\/.*|[a-z]+)$/.exec(line)
      return found ? [{ kind: found[1] as Kind, name: found[2]! }] : []
    })
    const folders = made.filter(({ kind }) => kind === 'folder')
    for (const { kind, name } of made.filter((one) => one.kind !== 'folder').toReversed()) unmake[kind](name, this.#removeUser)
    rmSync(this.file, { force: true })
    for (const { kind, name } of folders.toReversed()) unmake[kind](name, this.#removeUser)
    return copied(text)
  }

  #holder(text: string): number {
    return Number(/ begun by process (\d+)$/m.exec(text)?.[1] ?? 0)
  }

  #made(kind: Kind, name: string): void {
    this.#write(`made ${kind} ${name}`)
  }

  #write(text: string): void {
    const line = `${new Date().toISOString()} ${text.replaceAll('\n', '\n    ')}`
    if (this.#waiting) this.#waiting.push(text)
    else appendFileSync(this.file, `${line}\n`, { flush: true })
  }
}

/** Only once there is room again: the disk may be full. */
function copied(text: string): string {
  try {
    const copy = join(mkdtempSync(join(tmpdir(), 'pillarbox-init-')), 'init.log')
    writeFileSync(copy, text, { mode: 0o600 })
    return copy
  } catch {
    return 'its log could not be kept'
  }
}

/** Whatever the umask, which is stricter than what services read. */
function open(folder: string, mode: number): void {
  mkdirSync(folder)
  chmodSync(folder, mode)
}

function runs(id: number): boolean {
  try {
    process.kill(id, 0)
    return true
  } catch {
    return false
  }
}

/** The directories above a path that are not there, the outermost first. */
function foldersTo(path: string): string[] {
  const folder = dirname(path)
  return existsSync(folder) || folder === path ? [] : [...foldersTo(folder), folder]
}

/** What was noted and never made is gone already, and a directory that others use by now stays. */
function gone(remove: () => void): void {
  try {
    remove()
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!['ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST'].includes(code)) throw error
  }
}
