import { ByteBuffer } from '../core/byte-buffer.ts'
import { relieve } from '../core/memory.ts'
import { isLarge } from '../core/work/long-work.ts'
import type { MemoryShare } from './memory-budget.ts'

/** The longest line that is accepted, in octets without CRLF. Real mail exceeds the 998 of RFC 5322 2.1.1. */
export const longestLine = 65_536

/**
 * Why a message is refused. `bare`: a CR, LF or NUL that RFC 5321 2.3.8 forbids, as used for SMTP smuggling. `memory`: the memory budget for
 * messages is exhausted, or another sender needed what this message held; the message itself is fine.
 */
export type DataFlaw = 'bare' | 'line' | 'size' | 'memory'

/** Bytes that are kept of a refused message, to identify it in the log. */
const maxFlawedHead = 16_384

/** Collects the bytes of one message exactly as received, and checks them as they arrive. */
export class MessageOctets {
  readonly #limit: number
  readonly #share: MemoryShare
  readonly #octets = new ByteBuffer()
  #size = 0
  #flaw: DataFlaw | null = null
  #head: Buffer | null = null
  /** True if the previous chunk ended between CR and LF. */
  #split = false
  /** Bytes of the unfinished line so far. */
  #line = 0

  /** `limit` is the largest message size in bytes. The bytes held count in `share` until it is released or revoked. */
  constructor(limit: number, share: MemoryShare) {
    this.#limit = limit
    this.#share = share
    share.onRevoked = () => this.#refuse('memory')
  }

  get size(): number {
    return this.#size
  }

  /** The first flaw found, or null. */
  get flaw(): DataFlaw | null {
    return this.#flaw
  }

  add(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#flaw) return
    const flaw = this.#size > this.#limit ? 'size' : this.#check(chunk)
    if (!flaw && this.#share.reserve(chunk.length)) return this.#octets.add(chunk)
    this.#octets.add(chunk, 0, Math.min(chunk.length, maxFlawedHead))
    this.#refuse(flaw ?? 'memory')
  }

  /** The beginning of a message with a flaw; null without one. */
  get head(): Buffer | null {
    return this.#head
  }

  /** Drops the bytes held and releases their share. */
  drop(): void {
    this.#octets.drop()
    this.#share.release()
  }

  /** The whole message, in memory that can be transferred to a worker. Only once, and only without a flaw. */
  whole(): Buffer {
    this.#share.keep()
    const whole = this.#octets.take()!
    if (isLarge(whole.length)) relieve()
    return whole
  }

  #refuse(flaw: DataFlaw): void {
    this.#flaw = flaw
    this.#head = this.#octets.beginning(maxFlawedHead)
    this.drop()
  }

  #check(chunk: Buffer): DataFlaw | null {
    if (chunk.includes(0)) return 'bare'
    // Searching a Latin-1 copy for line ends is four times as fast as a loop over the bytes.
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
