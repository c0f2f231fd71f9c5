import { release } from './memory.ts'

/** Octets of the smallest and the largest block. */
const smallest = 4 * 1024
const largest = 1024 * 1024

/** Octets of a piece from which the runtime copies faster than a loop. */
const long = 48

/**
 * Octets that come in pieces, copied into blocks: a piece that is kept as it came holds all that was read from the socket with it, 64 KiB for
 * an octet. Nothing is allocated for a small piece, and at most half of the blocks is empty, beyond the first. Of more octets than `most` none are kept.
 */
export class Octets {
  readonly #most: number
  #blocks: Buffer[] = []
  /** Octets of the last block that are taken. */
  #taken = 0
  #size = 0

  constructor(most = Infinity) {
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  /** Whether there were too many. */
  get over(): boolean {
    return this.#size > this.#most
  }

  /** Octets of memory that it has. */
  get held(): number {
    return this.#blocks.reduce((sum, { length }) => sum + length, 0)
  }

  /** Adds `source.subarray(start, end)`. */
  add(source: Uint8Array, start = 0, end = source.length): void {
    const before = this.#size
    this.#size += end - start
    if (this.over) {
      this.#free(0)
      return
    }
    for (let at = start; at < end;) {
      const block = this.#block(before + at - start, end - at)
      const count = Math.min(end - at, block.length - this.#taken)
      const place = this.#taken
      if (count > long) block.set(source.subarray(at, at + count), place)
      else for (let index = 0; index < count; index += 1) block[place + index] = source[at + index]!
      this.#taken = place + count
      at += count
    }
  }

  /** A copy of the first of them, at most so many. */
  beginning(most: number): Buffer {
    const beginning = Buffer.allocUnsafeSlow(Math.min(most, this.over ? 0 : this.#size))
    this.#copy(beginning)
    return beginning
  }

  /** All of them, in memory of their own; null when there were too many. Begins anew, with nothing. */
  take(): Buffer | null {
    const { over } = this
    const whole = over ? null : Buffer.allocUnsafeSlow(this.#size)
    if (whole) this.#copy(whole, release)
    this.drop()
    return whole
  }

  /** Lets go of them, and begins anew. */
  drop(): void {
    // the first block serves again: many short messages or lines come one after the other
    this.#free(this.#blocks[0]?.length === smallest ? 1 : 0)
    this.#size = this.#taken = 0
  }

  /** Copies as many as there is room for. */
  #copy(to: Buffer, done?: (block: Buffer) => void): void {
    let at = 0
    for (const [index, block] of this.#blocks.entries()) {
      at += block.copy(to, at, 0, to.length - at)
      if (index > 0) done?.(block)
    }
  }

  /** A block with room for more, where there are so many octets and so many are to come. */
  #block(size: number, more: number): Buffer {
    const last = this.#blocks.at(-1)
    if (last && this.#taken < last.length) return last
    const block = Buffer.allocUnsafeSlow(Math.min(largest, Math.max(smallest, size, more)))
    this.#blocks.push(block)
    this.#taken = 0
    return block
  }

  #free(kept: number): void {
    for (const block of this.#blocks.splice(kept)) release(block)
  }
}

/** Chunks that anything may come in. */
const always = 16_384

/** Octets for each chunk beyond those. */
const eachAbove = 512

/** What is too much, after "it came in" and the like. */
export const tooManyChunks = `more than ${always} chunks of less than ${eachAbove} bytes`

/** Counts the chunks that one body comes in: the work on each, and the objects made of it, weigh far more than an octet does. */
export class Chunks {
  #count = 0
  #octets = 0

  /** Answers whether that is still few enough. */
  add(chunk: Uint8Array): boolean {
    this.#count += 1
    this.#octets += chunk.length
    return this.#count <= always + this.#octets / eachAbove
  }
}
