import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { compilePreload } from '../disk/preload.ts'

/** The time of day of a box that runs with `env`. */
export class ShiftedClock {
  readonly env: Record<string, string>
  readonly #handle: number
  #offset = 0

  /** Compiles clock.c into this directory. */
  constructor(directory: string) {
    const library = compilePreload(directory, new URL('clock.c', import.meta.url))
    const file = join(directory, 'offset')
    writeFileSync(file, Buffer.alloc(8))
    this.#handle = openSync(file, 'r+')
    this.env = { LD_PRELOAD: library, CLOCK_OFFSET: file }
  }

  /** Milliseconds by which it is ahead of the machine's. */
  get offset(): number {
    return this.#offset
  }

  now(): number {
    return Date.now() + this.#offset
  }

  jump(milliseconds: number): void {
    this.#offset += milliseconds
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(this.#offset))
    writeSync(this.#handle, bytes, 0, bytes.length, 0)
  }

  close(): void {
    closeSync(this.#handle)
  }
}
