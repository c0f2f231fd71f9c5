/** What a buffer begins with, in octets. */
const first = 64 * 1024

/** Octets of a piece from which the runtime copies faster than a loop. */
const long = 48

/** Octets that come in small pieces, in one buffer that grows: nothing is allocated for a piece. Of more than `most` none are kept. */
export class Octets {
  readonly #most: number
  #buffer: Buffer = Buffer.alloc(0)
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
      this.#buffer = Buffer.alloc(0)
      return
    }
    if (this.#size > this.#buffer.length) this.#grow()
    if (end - start > long) source.copy(this.#buffer, at, start, end)
    else for (let from = start; from < end; from += 1) this.#buffer[at + from - start] = source[from]!
  }

  /** A copy of all of them; null when there were too many. */
  get whole(): Buffer | null {
    return this.over ? null : Buffer.from(this.#buffer.subarray(0, this.#size))
  }

  /** Begins anew, with nothing. */
  clear(): void {
    this.#size = 0
    if (this.#buffer.length > first) this.#buffer = Buffer.alloc(0)
  }

  #grow(): void {
    const room = Math.min(this.#most, Math.max(first, this.#size, 2 * this.#buffer.length))
    const larger = Buffer.allocUnsafeSlow(room)
    this.#buffer.copy(larger)
    this.#buffer = larger
  }
}
