import { existsSync, rmSync, statSync } from 'node:fs'
import { open, rename, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Log } from '../core/log.ts'
import { randomFillSync } from 'node:crypto'

/** The result of `statfs`: the size of a block in bytes, and the blocks available to this process. */
type Statfs = (path: string) => Promise<{ bsize: number; bavail: number }>

interface SpaceOptions {
  /** Gets a line when the disk runs low, and when it has space again. */
  log?: Log | undefined
  statfs?: Statfs | undefined
}

/**
 * Watches the free space of the disk of a directory, every few seconds. Below `minimum` bytes it is low, until an eighth more than that is free
 * again, so that the state does not flap. A part of `minimum` is reserved by a file, which is removed when almost nothing is free: the database
 * needs space for its log to delete anything.
 */
export class Space {
  readonly #directory: string
  /** Bytes that must stay free. */
  readonly minimum: number
  readonly #measure: Statfs
  readonly #log: Log | undefined
  readonly #reserve: Reserve
  #low = false
  #logged = false
  #checking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #whileLow: () => void = () => {}
  #claim: (bytes: number) => Promise<void> = async () => {}

  constructor(directory: string, minimum: number, { log, statfs: measure = statfs }: SpaceOptions = {}) {
    this.#directory = directory
    this.minimum = minimum
    this.#measure = measure
    this.#log = log
    this.#reserve = new Reserve(directory, Math.min(largestReserve, Math.floor(minimum / 4)))
  }

  /** True if new data must be refused, as of the last check. */
  low(): boolean {
    return this.#low
  }

  /** Free bytes; null when they cannot be read. */
  async free(): Promise<number | null> {
    try {
      const { bsize, bavail } = await this.#measure(this.#directory)
      return bsize * bavail
    } catch {
      return null
    }
  }

  /** Sets the callback that takes the released space, in bytes, before others do; called at every check that finds the disk low. */
  onReserveReleased(claim: (bytes: number) => Promise<void>): void {
    this.#claim = claim
  }

  /** Sets a callback that is called at every check that finds the disk low. */
  whileLow(work: () => void): void {
    this.#whileLow = work
  }

  /** Checks now, then every `interval` milliseconds, and logs changes. */
  async start(interval = 5000): Promise<void> {
    await this.#watch()
    await this.stop()
    this.#timer = setInterval(() => {
      this.#checking ??= this.#watch().finally(() => (this.#checking = undefined))
    }, interval)
    this.#timer.unref()
  }

  /** Stops checking; resolves when no check is running. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#checking
  }

  /** Checks now. When the free space cannot be read nothing changes. */
  async check(): Promise<void> {
    const free = await this.free()
    if (free === null) return
    this.#low = free < (this.#low ? this.minimum * 1.125 : this.minimum)
    if (free < this.#reserve.size) this.#reserve.release()
  }

  async #watch(): Promise<void> {
    await this.check()
    if (this.#low && !this.#reserve.held) {
      // the rest is for the index of the log and small files
      await this.#claim((this.#reserve.size * 15) / 16).catch((error: unknown) =>
        this.#log?.warn({ err: error }, 'no space could be reserved on the disk'),
      )
    }
    if (this.#low !== this.#logged) await this.#logChange()
    this.#logged = this.#low
    if (this.#low) this.#whileLow()
    else await this.#createReserve()
  }

  async #logChange(): Promise<void> {
    const fields = { directory: this.#directory, free: await this.free(), required: this.minimum }
    if (this.#low) this.#log?.warn(fields, 'disk low on space: new data is rejected')
    else this.#log?.warn(fields, 'disk has space again: new data is accepted')
  }

  /** Creates the reserve, unless that would make the disk low. */
  async #createReserve(): Promise<void> {
    if (this.#reserve.size === 0 || this.#reserve.held) return
    if (((await this.free()) ?? 0) < this.minimum * 1.125 + this.#reserve.size) return
    await this.#reserve
      .hold()
      .catch((error: unknown) => this.#log?.warn({ err: error }, 'no space could be reserved on the disk'))
  }
}

/** The directory, or its nearest existing parent, which is on the same disk. */
export function existingPart(directory: string): string {
  const parent = dirname(directory)
  return existsSync(directory) || parent === directory ? directory : existingPart(parent)
}

/** Bytes of a database file, with its log. */
export async function databaseSize(file: string): Promise<number> {
  const sizes = await Promise.all(
    [file, `${file}-wal`].map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** `3.2 GiB` */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  const value = bytes / 1024 ** step
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${units[step]}`
}

const piece = 1024 * 1024

/**
 * The largest reserve in bytes: enough log to delete large data. More would need another page of the index of the log (`-shm`, 32 KiB for
 * 4062 frames of 4 KiB), for which there may be no space.
 */
const largestReserve = 16 * piece

/**
 * A file in the data directory that reserves disk space: SQLite cannot even read without space for its log, and a deletion writes before it
 * frees. On a full disk the file is removed, and the log gets its space.
 */
class Reserve {
  /** Bytes. */
  readonly size: number
  readonly #file: string

  constructor(directory: string, size: number) {
    this.#file = join(directory, 'reserve')
    this.size = size
  }

  get held(): boolean {
    return statSync(this.#file, { throwIfNoEntry: false })?.isFile() ?? false
  }

  /** Creates the file. When it cannot be written, it throws and leaves nothing. */
  async hold(): Promise<void> {
    const draft = `${this.#file}.part`
    try {
      const file = await open(draft, 'w', 0o600)
      try {
        // random, as some file systems compress repeated bytes
        const bytes = Buffer.alloc(Math.min(piece, this.size))
        for (let left = this.size; left > 0; left -= bytes.length) {
          await file.writeFile(randomFillSync(bytes).subarray(0, left))
        }
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(draft, this.#file)
    } catch (error) {
      rmSync(draft, { force: true })
      throw error
    }
  }

  release(): void {
    rmSync(this.#file, { force: true })
    rmSync(`${this.#file}.part`, { force: true })
  }
}
