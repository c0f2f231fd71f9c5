import { ByteBuffer } from '../../core/byte-buffer.ts'
import { Turns } from '../../core/work/paced-work.ts'

export interface Found {
  /** The bytes with CRLF line ends; null above the limit. */
  bytes: Buffer | null
  /** Its `From ` line without the line end. */
  from_line: string
  /** The position in the file after this message, in bytes. */
  end: number
}

const crlf = Buffer.from('\r\n')
const newline = Buffer.from('\n')
const mark = Buffer.from('>')
const nothing = Buffer.alloc(0)
const cr = 0x0d
const lf = 0x0a
const quote = 0x3e

/** Bytes written in one turn of the event loop. */
const slice = 1024 * 1024

/** The longest line that is buffered until its end. */
const longestLine = 64 * 1024

/**
 * The messages of an mbox (RFC 4155), streamed; in `mboxrd` a `>From ` loses one `>`. A message starts at a line `From …` with a time and a
 * year, at the start of the file or after an empty line. A message above `max` bytes is skipped, and nothing is allocated for its lines.
 */
export async function* messagesOf(file: AsyncIterable<Uint8Array>, max: number): AsyncGenerator<Found> {
  const gathered = new Gathered(max)
  let fromLine: string | undefined
  let afterEmpty = true
  /** True if the next bytes start a line, and do not continue one that is too long to buffer. */
  let begins = true
  /** Bytes of the file before `bytes`. */
  let before = 0
  let rest: Buffer = nothing
  for await (const chunk of file) {
    let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    if (rest.length > 0) bytes = Buffer.concat([rest, bytes])
    let start = 0
    for (let stop = lineEnd(bytes, 0); stop !== -1; stop = lineEnd(bytes, start)) {
      const end = stop + 1
      if (begins && afterEmpty && isFromLine(bytes, start, end)) {
        if (fromLine !== undefined) yield gathered.found(fromLine, before + start)
        fromLine = bytes.toString('latin1', start, end).trimEnd()
      } else if (fromLine !== undefined) {
        gathered.add(bytes, start, end, begins ? line : lastPiece)
      }
      afterEmpty = begins && isEmpty(bytes, start, end)
      begins = true
      start = end
    }
    if (bytes.length - start > longestLine) {
      // a CR may belong to the line end that comes next
      const cut = bytes.at(-1) === cr ? bytes.length - 1 : bytes.length
      if (fromLine !== undefined) gathered.add(bytes, start, cut, begins ? firstPiece : middlePiece)
      start = cut
      begins = false
      afterEmpty = false
    }
    rest = bytes.subarray(start)
    before += start
  }
  if (rest.length > 0) {
    if (begins && afterEmpty && isFromLine(rest, 0, rest.length)) {
      if (fromLine !== undefined) yield gathered.found(fromLine, before)
      fromLine = rest.toString('latin1').trimEnd()
    } else if (fromLine !== undefined) {
      gathered.add(rest, 0, rest.length, begins ? firstPiece : middlePiece)
    }
  }
  if (fromLine !== undefined) yield gathered.found(fromLine, before + rest.length)
}

/** True if a file that starts like this is an mbox. */
export function isMbox(start: Buffer): boolean {
  const text = start.toString('latin1').replace(/^[\r\n]+/, '')
  const head = Buffer.from(text.slice(0, text.search(/\n|$/)), 'latin1')
  return isFromLine(head, 0, head.length)
}

/**
 * A message in an mbox (`mboxrd`), with its `From ` line and the empty line after it; line ends are LF. `exact` is true if `messagesOf` restores the
 * same bytes, as it only produces CRLF line ends.
 */
export async function mboxrd(bytes: Buffer, sender: string, time: number): Promise<{ entry: Buffer; exact: boolean }> {
  const date = new Date(time).toUTCString()
  const [, weekday, day, month, year, clock] = /^(\w+), (\d+) (\w+) (\d+) ([\d:]+)/.exec(date)!
  const from = /^[\x21-\x7e]+$/.test(sender) ? sender : 'MAILER-DAEMON'
  const turns = new Turns()
  // a line grows by at most two bytes
  const entry = new ByteBuffer(2 * bytes.length + 1024)
  entry.add(Buffer.from(`From ${from} ${weekday} ${month} ${day} ${clock} ${year}\n`, 'latin1'))
  let exact = bytes.length > 0 && bytes.at(-1) === lf
  let seen = 0
  for (let start = 0, end = 0; start < bytes.length; start = end) {
    const stop = lineEnd(bytes, start)
    end = stop === -1 ? bytes.length : stop + 1
    const crs = stop > start && bytes[stop - 1] === cr ? (stop > start + 1 && bytes[stop - 2] === cr ? 2 : 1) : 0
    if (crs !== 1) exact = false
    if (isQuotable(bytes, start, end)) entry.add(mark)
    entry.add(bytes, start, stop === -1 ? end : stop - Math.min(crs, 1))
    entry.add(newline)
    if (end - seen > slice) {
      seen = end
      if (turns.due) await turns.yield()
    }
  }
  if (bytes.length === 0) entry.add(newline)
  entry.add(newline)
  return { entry: entry.take()!, exact }
}

/** The time in a `From ` line, in milliseconds since the epoch; undefined when it cannot be parsed. */
export function timeOf(fromLine: string): number | undefined {
  const date = /(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w{0,20}\s+\d.*/s.exec(fromLine)?.[0]
  // without a zone it is UTC (RFC 4155)
  const text = date === undefined ? undefined : /[+-]\d{4}|[A-Z]{3}|Z$/.test(date) ? date : `${date} UTC`
  const time = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

/** A part of a line: with its end if `whole`, its start if `begins`. */
interface Piece {
  whole: boolean
  begins: boolean
}

const line: Piece = { whole: true, begins: true }
const firstPiece: Piece = { whole: false, begins: true }
const middlePiece: Piece = { whole: false, begins: false }
const lastPiece: Piece = { whole: true, begins: false }

/** Collects the lines of a message. */
class Gathered {
  readonly #octets: ByteBuffer
  /** An empty line that may be the separator of two messages. */
  #held = false

  constructor(max: number) {
    this.#octets = new ByteBuffer(max)
  }

  /** Adds `bytes.subarray(start, end)`. */
  add(bytes: Buffer, start: number, end: number, { whole, begins }: Piece): void {
    if (this.#held) this.#octets.add(crlf)
    this.#held = whole && begins && isEmpty(bytes, start, end)
    if (this.#held) return
    const from = begins && isQuoted(bytes, start, end) ? start + 1 : start
    const bare = whole && (end - from < 2 || bytes[end - 2] !== cr)
    this.#octets.add(bytes, from, bare ? end - 1 : end)
    if (bare) this.#octets.add(crlf)
  }

  /** Returns the message, and starts the next. */
  found(fromLine: string, end: number): Found {
    const bytes = this.#octets.take()
    this.#held = false
    return { bytes, from_line: fromLine, end }
  }
}

/** Bytes that are examined one by one before the end of a line is searched for. */
const near = 16

/** The position of the next LF, or -1. */
function lineEnd(bytes: Buffer, start: number): number {
  const stop = Math.min(bytes.length, start + near)
  for (let at = start; at < stop; at += 1) if (bytes[at] === lf) return at
  return stop === bytes.length ? -1 : bytes.indexOf(lf, stop)
}

function isFromLine(bytes: Buffer, start: number, end: number): boolean {
  if (bytes[start] !== 0x46 || end - start > 1000 || bytes.toString('latin1', start, Math.min(end, start + 5)) !== 'From ')
    return false
  const text = bytes.toString('latin1', start, end)
  return /\b\d{1,2}:\d{2}\b/.test(text) && /\b(?:19|20)\d{2}\b/.test(text)
}

function isQuoted(bytes: Buffer, start: number, end: number): boolean {
  return bytes[start] === quote && isQuotable(bytes, start + 1, end)
}

/** True if it is `From `, after any number of `>`. */
function isQuotable(bytes: Buffer, start: number, end: number): boolean {
  let at = start
  while (at < end && bytes[at] === quote) at += 1
  return bytes[at] === 0x46 && bytes.toString('latin1', at, Math.min(end, at + 5)) === 'From '
}

function isEmpty(bytes: Buffer, start: number, end: number): boolean {
  return bytes[start] === lf || (end - start === 2 && bytes[start] === cr)
}
