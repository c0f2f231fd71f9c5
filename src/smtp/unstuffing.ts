/* oxlint-disable no-underscore-dangle -- the library's own names */
import type { Writable } from 'node:stream'

const cr = 13
const lf = 10
const dot = 46
const stuffed = Buffer.from('\r\n.')

/** Where in a line the octets so far have ended; `dot` and `dot cr` stand at its start and are held back. */
type Place = 'within' | 'cr' | 'start' | 'dot' | 'dot cr'

/** Takes the transparency of DATA off one message (RFC 5321 4.5.2): a line's first dot goes, CRLF.CRLF ends it and nothing else does. */
export class Unstuffing {
  #place: Place = 'start'

  /** The octets of the message in this packet, and what stood behind its end: null while there is none. */
  take(chunk: Buffer): { content: Buffer; rest: Buffer | null } {
    if (!this.#isPlain(chunk)) return this.#step(chunk)
    const lineEnd = chunk.indexOf(stuffed)
    if (lineEnd !== -1) {
      const plain = chunk.subarray(0, lineEnd + 2)
      this.#place = 'start'
      const { content, rest } = this.#step(chunk.subarray(lineEnd + 2))
      return { content: content.length === 0 ? plain : Buffer.concat([plain, content]), rest }
    }
    const last = chunk.at(-1)
    if (last === cr) this.#place = 'cr'
    else this.#place = last === lf && chunk.at(-2) === cr ? 'start' : 'within'
    return { content: chunk, rest: null }
  }

  /** Whether its octets up to the first CRLF with a dot behind it stay as they are. */
  #isPlain(chunk: Buffer): boolean {
    return this.#place === 'within' || (this.#place === 'start' && chunk.length > 0 && chunk[0] !== dot)
  }

  #step(chunk: Buffer): { content: Buffer; rest: Buffer | null } {
    // One more, for a CR held back.
    const content = Buffer.allocUnsafe(chunk.length + 1)
    let place = this.#place
    let length = 0
    // Octet by octet from the first dot on: a search for each costs more where there is nothing but dots.
    for (let at = 0; at < chunk.length; at++) {
      const octet = chunk[at]!
      if (place === 'start' && octet === dot) {
        place = 'dot'
        continue
      }
      if (place === 'dot' && octet === cr) {
        place = 'dot cr'
        continue
      }
      if (place === 'dot cr') {
        if (octet === lf) return { content: content.subarray(0, length), rest: chunk.subarray(at + 1) }
        content[length++] = cr
      }
      content[length++] = octet
      if (octet === cr) place = 'cr'
      else place = octet === lf && place === 'cr' ? 'start' : 'within'
    }
    this.#place = place
    return { content: content.subarray(0, length), rest: null }
  }
}

type Done = (error?: Error | null) => void

/** What smtp-server's parser is made of, as far as a message passes it. */
export interface Parser {
  _dataStream: Writable | null
  _feedDataStream(chunk: Buffer, done: Done): void
  _countDataBytes(octets: number): void
  _endDataMode(last: Buffer, rest: Buffer, done: Done): void
}

/**
 * Feeds the message that begins now to its stream, one write for each packet. The library's own way is a write and a turn of the event
 * loop for each stuffed dot: seconds for a message of nothing else.
 */
export function feedMessage(parser: Parser): void {
  const unstuffing = new Unstuffing()
  parser._feedDataStream = (chunk, done) => {
    const { content, rest } = unstuffing.take(chunk)
    parser._countDataBytes(content.length)
    if (rest) return parser._endDataMode(content, rest, done)
    const stream = parser._dataStream
    if (content.length === 0 || !stream?.writable || stream.write(content)) return done()
    const goOn = (): void => {
      stream.off('drain', goOn)
      stream.off('close', goOn)
      done()
    }
    stream.once('drain', goOn)
    // One that is destroyed never drains.
    stream.once('close', goOn)
  }
}
