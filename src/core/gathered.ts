import { release } from './release.ts'

/** Octets of the smallest and the largest block. */
const smallest = 4 * 1024
const largest = 1024 * 1024

/**
 * Octets that come in pieces, copied into blocks of its own: a piece that is kept as it came holds all that was read from the socket with it,
 * 64 KiB for an octet. At most half of what it has is empty, beyond the first block.
 */
export class Gathered {
  #blocks: Buffer[] = []
  /** Octets of the last block that are taken. */
  #taken = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Octets of memory that it has. */
  get held(): number {
    return this.#blocks.reduce((sum, { length }) => sum + length, 0)
  }

  add(piece: Uint8Array): void {
    for (let at = 0; at < piece.length;) {
      const last = this.#blocks.at(-1)
      if (!last || this.#taken === last.length) {
        this.#blocks.push(Buffer.allocUnsafeSlow(Math.min(largest, Math.max(smallest, this.#size))))
        this.#taken = 0
        continue
      }
      const part = piece.subarray(at, at + last.length - this.#taken)
      last.set(part, this.#taken)
      this.#taken += part.length
      this.#size += part.length
      at += part.length
    }
  }

  /** All of it, once. */
  whole(): Buffer {
    const whole = Buffer.allocUnsafeSlow(this.#size)
    let at = 0
    for (const block of this.#blocks) {
      at += block.copy(whole, at, 0, this.#size - at)
      release(block)
    }
    this.#blocks = []
    this.#taken = this.#size = 0
    return whole
  }
}
