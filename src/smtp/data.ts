import { ByteBuffer } from '../core/byte-buffer.ts'
import type { MemoryShare } from './memory-budget.ts'

/** The longest line we take, in octets without its CRLF; far above the 998 of RFC 5322 2.1.1, which real mail overruns. */
export const longestLine = 65_536

/**
 * Why a message will not be kept: `bare` is a CR, LF or NUL that RFC 5321 2.3.8 forbids, and the stuff smuggling is made of; `memory` is no
 * fault of its own, there was no room to hold it.
 */
export type DataFlaw = 'bare' | 'line' | 'size' | 'memory'

/** Octets of a message with a flaw that are held to say which it was. */
const shownOfFlawed = 16_384

/** Collects the octets of one message exactly as they came, and finds its flaws while they come. */
export class MessageOctets {
  readonly #limit: number
  readonly #share: MemoryShare
  readonly #octets = new ByteBuffer()
  #size = 0
  #flaw: DataFlaw | null = null
  #head: Buffer | null = null
  /** The chunk before ended between CR and LF. */
  #split = false
  /** Octets of the unfinished line so far. */
  #line = 0

  /** `limit` is the size of the largest message, in octets; what is held counts in `share` until that is given back. */
  constructor(limit: number, share: MemoryShare) {
    this.#limit = limit
    this.#share = share
  }

  get size(): number {
    return this.#size
  }

  /** The first flaw found, null so far. */
  get flaw(): DataFlaw | null {
    return this.#flaw
  }

  add(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#flaw) return
    this.#flaw = this.#size > this.#limit ? 'size' : this.#check(chunk)
    if (!this.#flaw && !this.#share.take(chunk.length)) this.#flaw = 'memory'
    if (!this.#flaw) return this.#octets.add(chunk)
    this.#octets.add(chunk, 0, Math.min(chunk.length, shownOfFlawed))
    this.#head = this.#octets.beginning(shownOfFlawed)
    this.drop()
  }

  /** How a message with a flaw begins, as far as it came; null without one. */
  get head(): Buffer | null {
    return this.#head
  }

  /** Lets go of all that is held, and gives back its share. */
  drop(): void {
    this.#octets.drop()
    this.#share.giveBack()
  }

  /** The whole message, once, in memory of its own that can be moved to a worker; only without a flaw. */
  whole(): Buffer {
    return this.#octets.take()!
  }

  #check(chunk: Buffer): DataFlaw | null {
    if (chunk.includes(0)) return 'bare'
    // Searching a Latin-1 copy for each line end is four times as fast as looking at every octet.
    const text = chunk.toString('latin1')
    let start = 0
    if (this.#split) {
      if (text[0] !== '\n') return 'bare'
      this.#split = false
      this.#line = 0
      start = 1
    }
    for (;;) {
      const feed = text.indexOf('\n', start)
      const back = text.indexOf('\r', start)
      const end = back === -1 ? text.length : back
      if (this.#line + end - start > longestLine) return 'line'
      if (feed === -1 && end >= text.length - 1) {
        this.#split = back !== -1
        this.#line += end - start
        return null
      }
      if (back === -1 || feed !== back + 1) return 'bare'
      this.#line = 0
      start = feed + 1
    }
  }
}
