/* oxlint-disable no-underscore-dangle -- the library's own names */
import type { Writable } from 'node:stream'
import { Unstuffing } from './unstuffing.ts'

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
