import { type FSWatcher, readlinkSync, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { performance } from 'node:perf_hooks'
import type { Log } from '../core/log.ts'
import { flaw, type Pair, readingOf } from './pair.ts'

/** The absolute paths of two PEM files, which may be the same file. */
export interface PairFiles {
  cert: string
  key: string
}

/** How long after a change the files are read, and after which further delay a broken pair is read again; in milliseconds. */
const settling = 250
const secondThought = 2000

/**
 * A pair in files that may be replaced at any time: in place, by renaming, or by changing a symbolic link. An unusable pair (one of the two files is
 * new, or half written) is not loaded: the former stays, and this is logged once.
 */
export class WatchedPair {
  readonly place: PairFiles
  readonly #log: Log
  readonly #renewed: () => void
  #pair: Pair
  #watchers: FSWatcher[] = []
  #timer: NodeJS.Timeout | undefined
  #reading: Promise<void> = Promise.resolve()
  #fault: string | null = null
  /** The time the fault was first seen, by `performance.now()`. */
  #since = 0
  #reported: string | null = null
  #closed = false

  private constructor(place: PairFiles, pair: Pair, log: Log, renewed: () => void) {
    this.place = place
    this.#pair = pair
    this.#log = log.child({ cert: place.cert })
    this.#renewed = renewed
  }

  /** Throws a sentence when the files hold no usable pair. */
  static async open(place: PairFiles, log: Log, renewed: () => void): Promise<WatchedPair> {
    const pair = await readPair(place)
    const fault = flaw(pair)
    if (fault !== null) throw new Error(`${place.cert} and ${place.key} cannot be used: ${fault}.`)
    return new WatchedPair(place, pair, log, renewed)
  }

  get pair(): Pair {
    return this.#pair
  }

  /** Why the current files are not used; null when they are. */
  get fault(): string | null {
    return this.#fault
  }

  /** Reads the files, and watches every directory that their paths pass through. */
  refresh(): Promise<void> {
    this.#watch()
    return this.#read()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  #watch(): void {
    if (this.#closed) return
    const former = this.#watchers
    const folders = new Set([...foldersOf(this.place.cert), ...foldersOf(this.place.key)])
    this.#watchers = [...folders].flatMap((folder) => {
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#readIn(settling))
        watcher.on('error', () => watcher.close())
        return [watcher]
      } catch {
        // some file systems do not report changes: the regular check remains
        return []
      }
    })
    for (const watcher of former) watcher.close()
  }

  #readIn(milliseconds: number): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    this.#timer = setTimeout(() => void this.refresh(), milliseconds).unref()
  }

  #read(): Promise<void> {
    // one after the other: an older reading must not win
    this.#reading = this.#reading.then(() => this.#readOnce())
    return this.#reading
  }

  async #readOnce(): Promise<void> {
    const pair = await readPair(this.place).catch((error: NodeJS.ErrnoException) => error)
    const fault = pair instanceof Error ? unreadable(pair) : flaw(pair)
    if (this.#closed) return
    if (fault === null) this.#take(pair as Pair)
    else this.#doubt(fault)
  }

  #take(pair: Pair): void {
    this.#fault = null
    this.#reported = null
    if (pair.cert === this.#pair.cert && pair.key === this.#pair.key) return
    this.#pair = pair
    const { names, not_after } = readingOf(pair.cert)
    this.#log.info({ names, not_after: new Date(not_after).toISOString() }, 'certificate replaced; the new one is in use')
    this.#renewed()
  }

  /** Between the replacement of both files they never match; only a lasting fault is logged. */
  #doubt(fault: string): void {
    if (this.#fault !== fault) this.#since = performance.now()
    this.#fault = fault
    if (this.#reported === fault) return
    const left = this.#since + secondThought - performance.now()
    if (left > 0) return this.#readIn(left)
    this.#reported = fault
    this.#log.warn({ problem: fault }, 'certificate was replaced by an unusable one; the former is still in use')
  }
}

async function readPair({ cert, key }: PairFiles): Promise<Pair> {
  return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
}

/** The directories to watch for changes: that of the path, and of every symbolic link it passes. */
function foldersOf(path: string): string[] {
  const folders: string[] = []
  // more links are a loop (path_resolution(7))
  for (let at = path; folders.length < 40;) {
    folders.push(dirname(at))
    const target = linkAt(at)
    if (target === undefined) break
    at = resolve(dirname(at), target)
  }
  return folders
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function unreadable({ code, path = 'a file', message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return `${path} is missing`
  return code === 'EACCES' ? `${path} may not be read by the box` : message
}
