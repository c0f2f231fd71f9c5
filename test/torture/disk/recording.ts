import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Random } from '../../support/random.ts'

/** What becomes of what was not forced to disk when the power fails. */
export type Loss = 'dropped' | 'kept' | 'prefix' | 'torn' | 'reordered'
export const losses: Loss[] = ['dropped', 'kept', 'prefix', 'torn', 'reordered']

const types = {
  opened: 1,
  written: 2,
  truncated: 3,
  syncBegan: 4,
  synced: 5,
  renamed: 6,
  linked: 7,
  unlinked: 8,
  madeDirectory: 9,
  removedDirectory: 10,
  syncFailed: 11,
}
const [created, emptied, isDirectory] = [1, 2, 4]
const entryHeader = 40
const sector = 512

/** A file, by whatever names: its first content, and every change in order. */
interface RecordedFile {
  base: Buffer
  changes: Change[]
}

interface Change {
  at: number
  /** The place in the recording from which on it is on disk for certain. */
  durable: number
  /** A sync of it failed: the kernel has given it up, and no later sync writes it. */
  lost: boolean
  offset: number
  /** Null for a truncation to `offset`. */
  bytes: Buffer | null
}

interface Naming {
  at: number
  durable: number
  directory: string
  apply: (names: Map<string, RecordedFile | 'directory'>) => void
}

interface Sync {
  files: Change[]
  names: Naming[]
}

/** What a box did to its files, as disk.c recorded it. Places in it are its length at that time. */
export class Recording {
  readonly length: number
  /** The places at which syncs began. */
  readonly syncs: number[] = []
  readonly #home: string
  readonly #base: Map<string, RecordedFile | 'directory'>
  readonly #files = new Set<RecordedFile>()
  readonly #byInode = new Map<number, RecordedFile>()
  readonly #directories = new Map<number, string>()
  readonly #namings: Naming[] = []
  readonly #syncs = new Map<bigint, Sync>()

  /** @param inodes the paths that there were before, by their inodes; `base` is a copy of them from before. */
  constructor(file: string, { home, base, inodes }: { home: string; base: string; inodes: Map<number, string> }) {
    this.#home = home
    this.#base = new Map([['', 'directory']])
    for (const [inode, path] of inodes) {
      if (statSync(join(base, path)).isDirectory()) {
        this.#base.set(path, 'directory')
        this.#directories.set(inode, path)
      } else {
        const recorded = this.#add(readFileSync(join(base, path)))
        this.#byInode.set(inode, recorded)
        this.#base.set(path, recorded)
      }
    }
    this.length = this.#read(readFileSync(file))
  }

  /** Writes the directory as it may be found when the power failed at this place; answers of which files and directories something is lost. */
  rebuild(target: string, { cut, loss, random }: { cut: number; loss: Loss; random: Random }): Set<string> {
    const names = new Map(this.#base)
    const made = this.#namings.filter(({ at }) => at <= cut)
    const pending = Map.groupBy(
      made.filter(({ durable }) => durable > cut),
      ({ directory }) => directory,
    )
    const kept = new Set([...pending.values()].flatMap((namings) => [...keptOf(namings, loss, random)]))
    const lost = new Set<string>()
    for (const naming of made) {
      if (naming.durable <= cut || kept.has(naming)) naming.apply(names)
      else lost.add(`${naming.directory}/`)
    }
    mkdirSync(target, { recursive: true, mode: 0o700 })
    const contents = new Map<RecordedFile, Buffer>()
    for (const [path, what] of [...names].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
      const place = join(target, path)
      mkdirSync(what === 'directory' ? place : dirname(place), { recursive: true, mode: 0o700 })
      if (what === 'directory') continue
      if (!contents.has(what)) contents.set(what, contentOf(what, { cut, loss, random, onLoss: () => void lost.add(path) }))
      writeFileSync(place, contents.get(what)!, { mode: 0o600 })
    }
    // the index of a log is mapped: what is on disk of it is anything
    for (const [path, what] of names)
      if (loss !== 'kept' && what !== 'directory' && path.endsWith('-wal') && random(2) === 0)
        writeFileSync(join(target, path.replace(/-wal$/, '-shm')), bytesOf(32_768, random), { mode: 0o600 })
    return lost
  }

  /** Compares a directory with what the recording makes of all changes; answers the paths that differ. */
  differences(directory: string, scratch: string): string[] {
    this.rebuild(scratch, { cut: this.length, loss: 'kept', random: () => 0 })
    const paths = new Set([...filesBelow(directory), ...filesBelow(scratch)])
    return [...paths].filter((path) => {
      try {
        return !readFileSync(join(directory, path)).equals(readFileSync(join(scratch, path)))
      } catch {
        return true
      }
    })
  }

  #add(base: Buffer): RecordedFile {
    const file = { base, changes: [] }
    this.#files.add(file)
    return file
  }

  /** Answers where the last whole entry ends. */
  #read(log: Buffer): number {
    let place = 0
    while (place + entryHeader <= log.length) {
      const type = log.readUInt32LE(place)
      const flags = log.readUInt32LE(place + 4)
      const inode = Number(log.readBigUInt64LE(place + 8))
      const offset = log.readBigUInt64LE(place + 16)
      const length = Number(log.readBigUInt64LE(place + 24))
      const [firstLength, secondLength] = [log.readUInt32LE(place + 32), log.readUInt32LE(place + 36)]
      const first = place + entryHeader
      const data = first + firstLength + secondLength
      const end = data + (type === types.written ? length : 0)
      if (end > log.length) break
      const [path, second] = [
        this.#pathOf(log.toString('utf8', first, first + firstLength)),
        this.#pathOf(log.toString('utf8', first + firstLength, data)),
      ]
      this.#take({ at: end, type, flags, inode, offset, length, path, second, bytes: log.subarray(data, end) })
      place = end
    }
    return place
  }

  #pathOf(absolute: string): string {
    return absolute === '' ? '' : relative(this.#home, absolute)
  }

  #take(entry: {
    at: number
    type: number
    flags: number
    inode: number
    offset: bigint
    length: number
    path: string
    second: string
    bytes: Buffer
  }): void {
    const { at, type, inode, path, second } = entry
    switch (type) {
      case types.opened:
        return this.#opened(entry)
      case types.written:
        return this.#change(inode, { at, offset: Number(entry.offset), bytes: entry.bytes })
      case types.truncated:
        return this.#change(inode, { at, offset: entry.length, bytes: null })
      case types.syncBegan:
        this.syncs.push(at)
        return this.#syncBegan(inode, entry.offset)
      case types.synced:
        return this.#syncEnded(entry.offset, ({ files, names }) => {
          for (const change of files) if (!change.lost) change.durable = Math.min(change.durable, at)
          for (const naming of names) naming.durable = Math.min(naming.durable, at)
        })
      case types.syncFailed:
        return this.#syncEnded(entry.offset, ({ files }) => {
          for (const change of files) if (change.durable === Infinity) change.lost = true
        })
      case types.renamed:
      case types.linked:
        return this.#name(at, second, (names) => {
          const what = names.get(path)
          if (what === 'directory') throw new Error(`The directory ${path} was renamed: no recording can tell what follows.`)
          if (what === undefined) return
          names.set(second, what)
          if (type === types.renamed) names.delete(path)
        })
      case types.madeDirectory:
        return this.#name(at, path, (names) => void names.set(path, 'directory'))
      case types.unlinked:
      case types.removedDirectory:
        return this.#name(at, path, (names) => void names.delete(path))
    }
  }

  #opened({ at, flags, inode, path }: { at: number; flags: number; inode: number; path: string }): void {
    if (flags & isDirectory) {
      this.#directories.set(inode, path)
    } else if (flags & created) {
      const file = this.#add(Buffer.alloc(0))
      this.#byInode.set(inode, file)
      this.#name(at, path, (names) => void names.set(path, file))
    } else if (flags & emptied) {
      this.#change(inode, { at, offset: 0, bytes: null })
    }
  }

  #change(inode: number, change: Pick<Change, 'at' | 'offset' | 'bytes'>): void {
    const file = this.#byInode.get(inode)
    if (file === undefined) throw new Error(`A file was changed that was never opened: inode ${inode}.`)
    file.changes.push({ ...change, durable: Infinity, lost: false })
  }

  #name(at: number, path: string, apply: Naming['apply']): void {
    const directory = dirname(path)
    this.#namings.push({ at, durable: Infinity, directory: directory === '.' ? '' : directory, apply })
  }

  #syncBegan(inode: number, number: bigint): void {
    const directory = this.#directories.get(inode)
    const files = this.#byInode.get(inode)?.changes.filter(({ durable }) => durable === Infinity) ?? []
    const names = this.#namings.filter((naming) => naming.directory === directory && naming.durable === Infinity)
    this.#syncs.set(number, { files, names })
  }

  #syncEnded(number: bigint, end: (sync: Sync) => void): void {
    const sync = this.#syncs.get(number)
    if (sync !== undefined) end(sync)
    this.#syncs.delete(number)
  }
}

/** The paths below a directory by their inodes, and the directory itself as ''. */
export function inodesBelow(directory: string): Map<number, string> {
  const names = ['', ...readdirSync(directory, { recursive: true, encoding: 'utf8' })]
  return new Map(names.map((name) => [statSync(join(directory, name)).ino, name]))
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(
    (name) => !name.endsWith('-shm') && statSync(join(directory, name)).isFile(),
  )
}

function contentOf(
  { base, changes }: RecordedFile,
  { cut, loss, random, onLoss }: { cut: number; loss: Loss; random: Random; onLoss: () => void },
): Buffer {
  const made = changes.filter(({ at }) => at <= cut)
  const pending = made.filter(({ durable }) => durable > cut)
  const kept = keptOf(pending, loss, random)
  let size = base.length
  let content = Buffer.from(base)
  const grow = (length: number): void => {
    if (length > content.length)
      content = Buffer.concat([content, Buffer.alloc(Math.max(length - content.length, content.length))])
    if (length > size) size = length
  }
  for (const change of made) {
    if (change.durable > cut && !kept.has(change)) {
      onLoss()
      continue
    }
    const { offset, bytes } = change
    if (bytes === null) {
      grow(offset)
      content.fill(0, offset)
      size = offset
    } else if (change.durable > cut && loss === 'torn') {
      for (const [from, to] of sectorsOf(offset, bytes.length)) {
        if (random(2) === 0) {
          onLoss()
          continue
        }
        grow(to)
        bytes.copy(content, from, from - offset, to - offset)
      }
    } else {
      grow(offset + bytes.length)
      bytes.copy(content, offset)
    }
  }
  return content.subarray(0, size)
}

function bytesOf(length: number, random: Random): Buffer {
  return Buffer.from(Array.from({ length }, () => random(256)))
}

/** Which of the changes that were not forced to disk are there after all: a name is there or not, in no part. */
function keptOf<Made extends Change | Naming>(pending: Made[], loss: Loss, random: Random): Set<Made> {
  switch (loss) {
    case 'dropped':
      return new Set()
    case 'kept':
      return new Set(pending)
    case 'torn':
      return new Set(pending.filter((made) => 'bytes' in made || random(2) === 0))
    case 'prefix':
      return new Set(pending.slice(0, random(pending.length + 1)))
    default:
      return new Set(pending.filter(() => random(2) === 0))
  }
}

/** The parts of a write that lie in one sector each. */
function sectorsOf(offset: number, length: number): [from: number, to: number][] {
  const parts: [number, number][] = []
  for (let from = offset; from < offset + length;) {
    const to = Math.min(offset + length, (Math.floor(from / sector) + 1) * sector)
    parts.push([from, to])
    from = to
  }
  return parts
}
