import { release } from './memory.ts'

/** Bytes of the smallest and the largest block. */
const smallest = 4 * 1024
const largest = 1024 * 1024

/** Bytes of a chunk from which the runtime copies faster than a loop. */
const long = 48

/**
 * Collects chunks of bytes by copying them into blocks: a chunk that is kept as it came keeps the whole buffer of the socket in memory, 64 KiB
 * for a byte. Nothing is allocated for a small chunk, and at most half of the blocks is empty, beyond the first. When there are more than `max`
 * bytes, none are kept.
 */
export class ByteBuffer {
  readonly #max: number
  #blocks: Buffer[] = []
  /** Bytes of the last block that are used. */
  #used = 0
  #size = 0

  constructor(max = Infinity) {
    this.#max = max
  }

  get size(): number {
    return this.#size
  }

  /** True if there were more bytes than the maximum. */
  get over(): boolean {
    return this.#size > this.#max
  }

  /** Bytes of memory that the blocks take. */
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
      const count = Math.min(end - at, block.length - this.#used)
      const place = this.#used
      if (count > long) block.set(source.subarray(at, at + count), place)
      else for (let index = 0; index < count; index += 1) block[place + index] = source[at + index]!
      this.#used = place + count
      at += count
    }
  }

  /** A copy of the first bytes, at most `max`. */
  beginning(max: number): Buffer {
    const beginning = Buffer.allocUnsafeSlow(Math.min(max, this.over ? 0 : this.#size))
    this.#copy(beginning)
    return beginning
  }

  /** Returns all bytes in a new buffer, or null when there were too many, and clears the blocks. */
  take(): Buffer | null {
    const { over } = this
    const whole = over ? null : Buffer.allocUnsafeSlow(this.#size)
    if (whole) this.#copy(whole, release)
    this.drop()
    return whole
  }

  /** Drops all bytes. */
  drop(): void {
    // the first block is used again: often many short messages or lines follow each other
    this.#free(this.#blocks[0]?.length === smallest ? 1 : 0)
    this.#size = this.#used = 0
  }

  /** Copies as many bytes as fit. */
  #copy(to: Buffer, done?: (block: Buffer) => void): void {
    let at = 0
    for (const [index, block] of this.#blocks.entries()) {
      at += block.copy(to, at, 0, to.length - at)
      if (index > 0) done?.(block)
    }
  }

  /** A block with free bytes; `size` bytes are stored so far and `more` are to follow. */
  #block(size: number, more: number): Buffer {
    const last = this.#blocks.at(-1)
    if (last && this.#used < last.length) return last
    const block = Buffer.allocUnsafeSlow(Math.min(largest, Math.max(smallest, size, more)))
    this.#blocks.push(block)
    this.#used = 0
    return block
  }

  #free(kept: number): void {
    for (const block of this.#blocks.splice(kept)) release(block)
  }
}

/** Chunks that a body of any size may have. */
const freeChunks = 16_384

/** Bytes of the body for each further chunk. */
const bytesPerChunk = 512

/** The exceeded limit, for the end of a sentence such as "It consists of …". */
export function tooManyChunksReason(free = freeChunks): string {
  return `more than ${free} chunks of less than ${bytesPerChunk} bytes`
}

/** Limits the chunks of one body: a chunk costs far more time and memory than a byte does. */
export class Chunks {
  readonly #free: number
  #count = 0
  #bytes = 0

  /** `free` are the chunks of any size. */
  constructor(free = freeChunks) {
    this.#free = free
  }

  /** Returns whether the number of chunks is still within the limit. */
  add(chunk: Uint8Array): boolean {
    this.#count += 1
    this.#bytes += chunk.length
    return this.#count <= this.#free + this.#bytes / bytesPerChunk
  }
}
