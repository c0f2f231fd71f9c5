import { randomFillSync } from 'node:crypto'
import { rmSync, statSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'

const piece = 1024 * 1024

/**
 * The largest reserve in bytes: enough log to delete large data. More would need another page of the index of the log (`-shm`, 32 KiB for
 * 4062 frames of 4 KiB), for which there may be no space.
 */
export const largestReserve = 16 * piece

/**
 * A file in the data directory that reserves disk space: SQLite cannot even read without space for its log, and a deletion writes before it
 * frees. On a full disk the file is removed, and the log gets its space.
 */
export class Reserve {
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
