/** What a buffer begins with, in octets. */
const first = 64 * 1024

/** Octets of a piece from which the runtime copies faster than a loop. */
const long = 48

/** Octets that come in small pieces, in one buffer that grows in place: nothing is allocated for a piece. Of more than `most`, a finite number, none are kept. */
export class Octets {
  readonly #most: number
  #buffer = none()
  #size = 0

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  /** Whether there were too many. */
  get over(): boolean {
    return this.#size > this.#most
  }

  /** Adds `source.subarray(start, end)`. */
  add(source: Buffer, start = 0, end = source.length): void {
    const at = this.#size
    this.#size += end - start
    if (this.over) {
      this.#buffer = none()
      return
    }
    if (this.#size > this.#buffer.length) this.#grow()
    if (end - start > long) source.copy(this.#buffer, at, start, end)
    else for (let from = start; from < end; from += 1) this.#buffer[at + from - start] = source[from]!
  }

  /** All of them, null when there were too many; begins anew, with nothing. */
  take(): Buffer | null {
    const { over } = this
    const size = this.#size
    this.#size = 0
    if (over) return null
    if (this.#buffer.length <= first) return Buffer.from(this.#buffer.subarray(0, size))
    // many are not copied
    const { buffer } = this.#buffer
    buffer.resize(size)
    this.#buffer = none()
    return Buffer.from(buffer)
  }

  /** In place: only what is written to takes memory, and nothing is copied. */
  #grow(): void {
    const room = Math.min(this.#most, Math.max(first, this.#size, 2 * this.#buffer.length))
    if (this.#buffer.length === 0) this.#buffer = Buffer.from(new ArrayBuffer(room, { maxByteLength: this.#most }))
    else this.#buffer.buffer.resize(room)
  }
}

function none(): Buffer<ArrayBuffer> {
  return Buffer.from(new ArrayBuffer(0))
}
