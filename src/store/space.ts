import { existsSync } from 'node:fs'
import { stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Log } from '../core/log.ts'
import { largestReserve, Reserve } from './reserve.ts'

/** What `statfs` tells of a file system: the size of a block in bytes, and the blocks free for us. */
type Measure = (path: string) => Promise<{ bsize: number; bavail: number }>

interface SpaceOptions {
  /** Receives a line when the disk gets short, and when it has room again. */
  log?: Log | undefined
  measure?: Measure | undefined
}

/**
 * Watches the free space of the disk that a directory lies on, every few seconds. Below `minimum` bytes it is low,
 * until an eighth more than that is free again, so that mail is not taken and put off in turns. A part of `minimum` is reserved by a
 * file, which makes way for a longer log of the database when next to nothing is free: what makes room needs some itself.
 */
export class Space {
  readonly #directory: string
  /** Bytes that are to stay free. */
  readonly minimum: number
  readonly #measure: Measure
  readonly #log: Log | undefined
  readonly #reserve: Reserve
  #low = false
  #logged = false
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #whileLow: () => void = () => {}
  #claim: (bytes: number) => Promise<void> = async () => {}

  constructor(directory: string, minimum: number = 256 * 1024 * 1024, { log, measure = statfs }: SpaceOptions = {}) {
    this.#directory = directory
    this.minimum = minimum
    this.#measure = measure
    this.#log = log
    this.#reserve = new Reserve(directory, Math.min(largestReserve, Math.floor(minimum / 4)))
  }

  /** Whether nothing new is to be taken; as of the last look, never a wait. */
  low(): boolean {
    return this.#low
  }

  /** Bytes that are free now; null when the disk does not say. */
  async free(): Promise<number | null> {
    try {
      const { bsize, bavail } = await this.#measure(this.#directory)
      return bsize * bavail
    } catch {
      return null
    }
  }

  /** Has the room that the reserve left, in bytes, taken by `claim` before others do; called at every look that finds the disk low. */
  leaveTo(claim: (bytes: number) => Promise<void>): void {
    this.#claim = claim
  }

  /** Has `work` called at every look that finds the disk low. */
  whileLow(work: () => void): void {
    this.#whileLow = work
  }

  /** Looks now, then every `interval` milliseconds, and logs what changes. */
  async start(interval = 5000): Promise<void> {
    await this.#watch()
    await this.stop()
    this.#timer = setInterval(() => {
      this.#looking ??= this.#watch().finally(() => (this.#looking = undefined))
    }, interval)
    this.#timer.unref()
  }

  /** Resolves when no look is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  /** Looks now. A disk that does not answer changes nothing: the store itself will tell. */
  async check(): Promise<void> {
    const free = await this.free()
    if (free === null) return
    this.#low = free < (this.#low ? this.minimum * 1.125 : this.minimum)
    if (free < this.#reserve.size) this.#reserve.release()
  }

  async #watch(): Promise<void> {
    await this.check()
    if (this.#low && !this.#reserve.held) {
      // the rest is for the index of the log, and small files
      await this.#claim((this.#reserve.size * 15) / 16).catch((error: unknown) =>
        this.#log?.warn({ err: error }, 'no room could be reserved on the disk'),
      )
    }
    if (this.#low !== this.#logged) await this.#tell()
    this.#logged = this.#low
    if (this.#low) this.#whileLow()
    else await this.#hold()
  }

  async #tell(): Promise<void> {
    const seen = { directory: this.#directory, free: await this.free(), required: this.minimum }
    if (this.#low) this.#log?.warn(seen, 'the disk is short of room: nothing new is taken')
    else this.#log?.warn(seen, 'the disk has room again: new things are taken')
  }

  /** Only where the reserve itself does not make the disk low. */
  async #hold(): Promise<void> {
    if (this.#reserve.size === 0 || this.#reserve.held) return
    if (((await this.free()) ?? 0) < this.minimum * 1.125 + this.#reserve.size) return
    await this.#reserve.hold().catch((error: unknown) => this.#log?.warn({ err: error }, 'no room could be reserved on the disk'))
  }
}

/** The directory, or what of its path is there already: it will lie on the same disk. */
export function existingPart(directory: string): string {
  const parent = dirname(directory)
  return existsSync(directory) || parent === directory ? directory : existingPart(parent)
}

/** Octets of the database in a data directory, with its log. */
export async function databaseSize(directory: string): Promise<number> {
  const file = join(directory, 'pillarbox.db')
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
export function sized(octets: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, octets)) / 10)))
  const value = octets / 1024 ** step
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${units[step]}`
}
