/** One message of an mbox. */
export interface Found {
  /** The octets with CRLF line ends; null when there were more than are taken. */
  octets: Buffer | null
  /** The line that began it, without its end. */
  from_line: string
  /** Octets of the file up to the end of this message. */
  end: number
}

const crlf = Buffer.from('\r\n')
const quote = Buffer.from('>')

/** Longest line that is held back until its end is there. */
const longestLine = 64 * 1024

/**
 * The messages of an mbox (RFC 4155), one by one as the file is read; `mboxrd`, whose `>From ` loses one `>`. A message begins at a line
 * `From …` that names a time and a year, at the start or after an empty line. Of a message above `most` octets none are kept.
 */
export async function* messagesOf(file: AsyncIterable<Uint8Array>, most: number): AsyncGenerator<Found> {
  let current: Gathered | undefined
  let afterEmpty = true
  let end = 0
  for await (const { line, whole, begins } of linesOf(file)) {
    const starts = begins && afterEmpty && isFromLine(line)
    if (starts) {
      if (current) yield current.found(end)
      current = new Gathered(line.toString('latin1').trimEnd(), most)
    } else {
      current?.add({ line: begins && isQuoted(line) ? line.subarray(1) : line, whole, begins })
    }
    end += line.length
    afterEmpty = begins && whole && isEmpty(line)
  }
  if (current) yield current.found(end)
}

/** Whether a file that begins like this is an mbox. */
export function isMbox(start: Buffer): boolean {
  const text = start.toString('latin1').replace(/^[\r\n]+/, '')
  return isFromLine(Buffer.from(text.slice(0, text.search(/\n|$/)), 'latin1'))
}

/** A message as it stands in an mbox (`mboxrd`), with its `From ` line and the empty line behind; line ends are LF. */
export function mboxrd(octets: Buffer, sender: string, time: number): Buffer {
  const text = octets
    .toString('latin1')
    .replaceAll('\r\n', '\n')
    .replaceAll(/^(?=>*From )/gm, '>')
  const date = new Date(time).toUTCString()
  const [, weekday, day, month, year, clock] = /^(\w+), (\d+) (\w+) (\d+) ([\d:]+)/.exec(date)!
  const from = /^[\x21-\x7e]+$/.test(sender) ? sender : 'MAILER-DAEMON'
  return Buffer.from(
    `From ${from} ${weekday} ${month} ${day} ${clock} ${year}\n${text}${text.endsWith('\n') ? '' : '\n'}\n`,
    'latin1',
  )
}

/** Whether `messagesOf` gives back from `mboxrd` what was put in: it knows no line end but CRLF. */
export function survives(octets: Buffer): boolean {
  return !/(?:^|[^\r])\n|\r\r\n|[^\n]$/.test(octets.toString('latin1')) && octets.length > 0
}

/** The time that a `From ` line names, in milliseconds since the epoch; undefined when it cannot be read. */
export function timeOf(fromLine: string): number | undefined {
  const date =
    /(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,?\s+)?((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w*\s+\d.*)$/.exec(
      fromLine,
    )?.[1]
  // without a zone it is UTC (RFC 4155)
  const text = date === undefined ? undefined : /[+-]\d{4}|[A-Z]{3}|Z$/.test(date) ? date : `${date} UTC`
  const time = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

/** The lines of a message as they come. */
class Gathered {
  readonly #fromLine: string
  readonly #most: number
  #pieces: Buffer[] = []
  #size = 0
  /** The empty line that may be the one between two messages. */
  #held = false

  constructor(fromLine: string, most: number) {
    this.#fromLine = fromLine
    this.#most = most
  }

  add({ line, whole, begins }: Line): void {
    if (this.#held) this.#put(crlf)
    this.#held = whole && begins && isEmpty(line)
    if (this.#held) return
    const bare = whole && line.at(-2) !== 0x0d
    this.#put(bare ? line.subarray(0, -1) : line)
    if (bare) this.#put(crlf)
  }

  found(end: number): Found {
    const octets = this.#size > this.#most ? null : Buffer.concat(this.#pieces)
    return { octets, from_line: this.#fromLine, end }
  }

  #put(piece: Buffer): void {
    this.#size += piece.length
    if (this.#size > this.#most) this.#pieces = []
    else this.#pieces.push(piece)
  }
}

interface Line {
  /** With its line end, if it has one. */
  line: Buffer
  whole: boolean
  /** False for what goes on with a line too long to be held. */
  begins: boolean
}

async function* linesOf(file: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  let rest: Buffer = Buffer.alloc(0)
  let begins = true
  for await (const chunk of file) {
    let octets = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    if (rest.length > 0) octets = Buffer.concat([rest, octets])
    let start = 0
    for (let stop = octets.indexOf(10); stop !== -1; stop = octets.indexOf(10, start)) {
      yield { line: octets.subarray(start, stop + 1), whole: true, begins }
      start = stop + 1
      begins = true
    }
    rest = octets.subarray(start)
    if (rest.length > longestLine) {
      // a CR may belong to the line end that comes next
      const cut = rest.at(-1) === 0x0d ? rest.length - 1 : rest.length
      yield { line: rest.subarray(0, cut), whole: false, begins }
      rest = rest.subarray(cut)
      begins = false
    }
  }
  if (rest.length > 0) yield { line: rest, whole: false, begins }
}

function isFromLine(line: Buffer): boolean {
  if (line.length > 1000 || line[0] !== 0x46 || line.toString('latin1', 0, 5) !== 'From ') return false
  const text = line.toString('latin1')
  return /\b\d{1,2}:\d{2}\b/.test(text) && /\b(?:19|20)\d{2}\b/.test(text)
}

function isQuoted(line: Buffer): boolean {
  if (line[0] !== quote[0]) return false
  let at = 1
  while (line[at] === quote[0]) at += 1
  return line.toString('latin1', at, at + 5) === 'From '
}

function isEmpty(line: Buffer): boolean {
  return line.length === 1 || (line.length === 2 && line[0] === 0x0d)
}
