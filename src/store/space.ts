import { statfs } from 'node:fs/promises'

/** What `statfs` tells of a file system: the size of a block in bytes, and the blocks free for us. */
type Measure = (path: string) => Promise<{ bsize: number; bavail: number }>

/**
 * Watches the free space of the disk that a directory lies on, every few seconds. Below `minimum` bytes it is low,
 * until an eighth more than that is free again, so that mail is not taken and put off in turns.
 */
export class Space {
  readonly #directory: string
  /** Octets that are to stay free. */
  readonly minimum: number
  readonly #measure: Measure
  #low = false
  #timer: NodeJS.Timeout | undefined

  constructor(directory: string, minimum: number = 256 * 1024 * 1024, measure: Measure = statfs) {
    this.#directory = directory
    this.minimum = minimum
    this.#measure = measure
  }

  /** Whether nothing new is to be taken; as of the last look, never a wait. */
  low(): boolean {
    return this.#low
  }

  /** Octets that are free now; null when the disk does not say. */
  async free(): Promise<number | null> {
    try {
      const { bsize, bavail } = await this.#measure(this.#directory)
      return bsize * bavail
    } catch {
      return null
    }
  }

  /** Looks now, then every `interval` milliseconds. */
  async start(interval = 5000): Promise<void> {
    await this.check()
    this.stop()
    this.#timer = setInterval(() => void this.check(), interval)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Looks now. A disk that does not answer changes nothing: the store itself will tell. */
  async check(): Promise<void> {
    try {
      const { bsize, bavail } = await this.#measure(this.#directory)
      const free = bsize * bavail
      this.#low = free < (this.#low ? this.minimum * 1.125 : this.minimum)
    } catch {
      return
    }
  }
}
