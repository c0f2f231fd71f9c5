/* oxlint-disable no-underscore-dangle -- the library's own names */
import type { PassThrough } from 'node:stream'
import { release } from '../core/memory.ts'
import { kindOf, readingTurns } from '../net/reading-turns.ts'

const cr = 13
const lf = 10
const dot = 46
const stuffed = Buffer.from('\r\n.')

/** The position within a line after the bytes so far. `dot` and `dot cr` are at its start; these bytes are held back. */
type Position = 'within' | 'cr' | 'start' | 'dot' | 'dot cr'

/** Removes the dot stuffing of one message (RFC 5321 4.5.2): the first dot of a line is dropped. Only CRLF.CRLF ends the message. */
export class Unstuffing {
  #position: Position = 'start'

  /** The bytes of the message in this chunk, and those after its end, null before the end. */
  take(chunk: Buffer): { content: Buffer; rest: Buffer | null } {
    if (!this.#isPlain(chunk)) return this.#step(chunk)
    const lineEnd = chunk.indexOf(stuffed)
    if (lineEnd !== -1) {
      const plain = chunk.subarray(0, lineEnd + 2)
      this.#position = 'start'
      const { content, rest } = this.#step(chunk.subarray(lineEnd + 2))
      return { content: content.length === 0 ? plain : Buffer.concat([plain, content]), rest }
    }
    const last = chunk.at(-1)
    if (last === cr) this.#position = 'cr'
    else this.#position = last === lf && chunk.at(-2) === cr ? 'start' : 'within'
    return { content: chunk, rest: null }
  }

  /** True if the octets up to the first CRLF followed by a dot can be copied unchanged. */
  #isPlain(chunk: Buffer): boolean {
    return this.#position === 'within' || (this.#position === 'start' && chunk.length > 0 && chunk[0] !== dot)
  }

  #step(chunk: Buffer): { content: Buffer; rest: Buffer | null } {
    // One more, for a held-back CR.
    const content = Buffer.allocUnsafe(chunk.length + 1)
    let position = this.#position
    let length = 0
    // Byte by byte from the first dot on: a search for each dot is slow for a message of nothing but dots.
    for (let at = 0; at < chunk.length; at++) {
      const octet = chunk[at]!
      if (position === 'start' && octet === dot) {
        position = 'dot'
        continue
      }
      if (position === 'dot' && octet === cr) {
        position = 'dot cr'
        continue
      }
      if (position === 'dot cr') {
        if (octet === lf) return { content: content.subarray(0, length), rest: chunk.subarray(at + 1) }
        content[length++] = cr
      }
      content[length++] = octet
      if (octet === cr) position = 'cr'
      else position = octet === lf && position === 'cr' ? 'start' : 'within'
    }
    this.#position = position
    return { content: content.subarray(0, length), rest: null }
  }
}

type Done = (error?: Error | null) => void

/** The parts of smtp-server's parser that handle message data. */
export interface Parser {
  _dataStream: PassThrough | null
  _write(chunk: Buffer, encoding: 'buffer', done: Done): void
  _feedDataStream(chunk: Buffer, done: Done): void
  _countDataBytes(octets: number): void
  _endDataMode(last: Buffer, rest: Buffer, done: Done): void
}

/** Bytes that are read at once: those of an ordinary message, and less of lines without text, each of which takes as long as a hundred bytes. */
const slice = 16 * 1024

/**
 * Writes the message that begins now to its stream, one write for each slice, in turn with what other networks send. The library itself needs a write and
 * an iteration of the event loop for each stuffed dot, which takes seconds for a message of nothing else.
 */
export function feedMessage(parser: Parser, network: string): void {
  const unstuffing = new Unstuffing()
  const feed = (chunk: Buffer, done: Done): void => {
    const { content, rest } = unstuffing.take(chunk)
    parser._countDataBytes(content.length)
    if (rest) return parser._endDataMode(content, rest, done)
    const stream = parser._dataStream
    if (content.length === 0 || !stream?.writable || stream.write(content)) return done()
    const resume = (): void => {
      stream.off('drain', resume)
      stream.off('close', resume)
      done()
    }
    stream.once('drain', resume)
    // A destroyed stream never drains.
    stream.once('close', resume)
  }
  /** The packet that is being read, if it has a buffer of its own; and the one before, when all of it was written to the stream. */
  let [packet, former]: (Buffer | undefined)[] = []
  parser._feedDataStream = (chunk, done) => {
    if (chunk.buffer !== packet?.buffer) {
      // who reads the stream copies: the memory of megabytes of packets would be given back by the next garbage collection
      if (former && parser._dataStream?.readableLength === 0) release(former)
      former = packet
      packet = chunk.length > slice && chunk.length === chunk.buffer.byteLength ? chunk : undefined
    }
    readingTurns.enter(kindOf(chunk, network), network, () => {
      if (chunk.length <= slice) return feed(chunk, done)
      const rest = chunk.subarray(slice)
      // the message may have ended within the slice
      feed(chunk.subarray(0, slice), (error) => (error ? done(error) : parser._write(rest, 'buffer', done)))
    })
  }
}
