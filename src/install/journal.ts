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

type Kind = 'file' | 'folder' | 'filled' | 'user'

const unmake: Record<Kind, (name: string, removeUser: (name: string) => void) => void> = {
  file: (path) => gone(() => rmSync(path)),
  // other files in it are not ours
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
 * The journal of a set-up: what was checked and what was created, each recorded before it is created. It allows undoing everything, by this
 * process when it fails, or by the next one when this was killed.
 */
export class Journal {
  readonly file: string
  readonly #removeUser: (name: string) => void
  /** Lines kept until the file can be created. */
  #waiting: string[] | undefined = []
  readonly #folders = new Set<string>()

  constructor(file: string, removeUser: (name: string) => void) {
    this.file = file
    this.#removeUser = removeUser
  }

  /** True if an unfinished set-up exists here. Throws a sentence when it is running, or belongs to another user. */
  get unfinished(): boolean {
    if (!existsSync(this.file)) return false
    const text = readFileSync(this.file, 'utf8')
    if (text.trimEnd().endsWith(last)) return false
    if (lstatSync(this.file).uid !== process.getuid?.()) {
      throw new Error(`${this.file} records an unfinished set-up by another user: remove the files it lists, then the file.`)
    }
    const holder = this.#holder(text)
    if (holder > 0 && holder !== process.pid && runs(holder)) {
      throw new Error(`Process ${holder} is setting up a box here. If that process is a different program, remove ${this.file}.`)
    }
    return true
  }

  /** True if another process than the interrupted set-up has opened the box in this data directory. */
  used(data: string): boolean {
    const opened = join(data, 'lock.pid')
    if (!existsSync(opened)) return false
    const another = Number(readFileSync(opened, 'utf8')) !== this.#holder(readFileSync(this.file, 'utf8'))
    // in containers the first process always has id 1
    return another || statSync(opened).mtimeMs > statSync(this.file).mtimeMs + 60_000
  }

  /** Creates the file and its parent directories; until then lines are kept in memory. */
  begin(): void {
    const missing = foldersTo(this.file)
    for (const folder of missing) {
      open(folder, 0o755)
      this.#folders.add(folder)
    }
    writeFileSync(this.file, '', { flag: 'wx', mode: 0o600 })
    const lines = [`started by process ${process.pid}`, ...(this.#waiting ?? [])]
    this.#waiting = undefined
    for (const line of lines) this.#write(line)
    for (const folder of missing) this.#made('folder', folder)
  }

  note(text: string): void {
    this.#write(text)
  }

  /** Creates a file and its parent directories. Throws when the file exists. */
  put(path: string, text: string, mode: number): void {
    for (const folder of foldersTo(path)) this.folder(folder, 0o755)
    if (existsSync(path)) throw new Error(`${path} exists already.`)
    this.#made('file', path)
    writeFileSync(path, text, { flag: 'wx', mode })
    chmodSync(path, mode)
  }

  link(path: string, target: string): void {
    this.#made('file', path)
    symlinkSync(target, path)
  }

  /** Creates a directory and its parents if missing. An existing one keeps its mode. */
  folder(path: string, mode: number): void {
    for (const one of [...foldersTo(path), path]) {
      if (existsSync(one)) continue
      this.#made('folder', one)
      open(one, 0o755)
      this.#folders.add(one)
    }
    if (this.#folders.has(path)) chmodSync(path, mode)
  }

  /** The same for a directory that other programs fill: everything in it is removed on undo. */
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

  /** Removes everything that was created, including the journal; returns the path of a copy of it. */
  undo(): string {
    const text = readFileSync(this.file, 'utf8')
    // an incomplete last line was truncated by a full disk: its path may be partial, and was not created
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
    return Number(/ (?:started|begun) by process (\d+)$/m.exec(text)?.[1] ?? 0)
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

/** Called after the removal, as the disk may be full. */
function copied(text: string): string {
  try {
    const copy = join(mkdtempSync(join(tmpdir(), 'pillarbox-init-')), 'init.log')
    writeFileSync(copy, text, { mode: 0o600 })
    return copy
  } catch {
    return 'its log could not be kept'
  }
}

/** Independent of the umask, which may be stricter than services need. */
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

/** The missing parent directories of a path, the outermost first. */
function foldersTo(path: string): string[] {
  const folder = dirname(path)
  return existsSync(folder) || folder === path ? [] : [...foldersTo(folder), folder]
}

/** Ignores objects that were never created, and directories that other files use. */
function gone(remove: () => void): void {
  try {
    remove()
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!['ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST'].includes(code)) throw error
  }
}
