import { isAscii } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { JsonScan, usualBounds } from '../core/json.ts'
import { Turns } from '../core/work/paced-work.ts'
import { malformed, parseScanned, requireText } from './json.ts'

/** Bytes above which a body is parsed in pieces. */
const large = 1024 * 1024

/** Bytes of the longest string that is not parsed separately: no key is longer. There are at most as many strings as tokens, 10 MB together. */
const long = 1024 + 2

/** Bytes of a string that are parsed at once: about 3 ms when all are escapes. */
const piece = 512 * 1024

const quote = 0x22
const backslash = 0x5c

/** Characters that a string may only have as escapes (RFC 8259 7). */
// eslint-disable-next-line no-control-regex -- these are what is looked for
const control = /[\0-\x1f]/

/** A piece of a body does not begin with a byte order mark. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The same as `parseScanned`. The long strings of a large body are parsed separately, in pieces with other work in between: 40 MiB at once would
 * block the main thread for 60 ms, or 120 ms for escapes.
 */
export async function parseInTurns(bytes: Uint8Array, scan: JsonScan): Promise<Record<string, unknown>> {
  if (bytes.length <= large) return parseScanned(bytes, scan)
  // more strings than tokens are not JSON
  if (scan.isInString || scan.ends.length > usualBounds.tokens) throw malformed('The body is not valid JSON.')
  const turns = new Turns()
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  // a placeholder that cannot occur in the body
  const name = randomUUID()
  const texts = new Map<string, string>()
  const rest: Buffer[] = []
  let from = 0
  let at = 0
  for (const end of scan.ends) {
    const start = body.indexOf(quote, at)
    at = end
    if (end - start <= long) continue
    const placeholder = `${name} ${texts.size}`
    rest.push(body.subarray(from, start), Buffer.from(`"${placeholder}"`))
    from = end
    const text = body.subarray(start + 1, end - 1)
    const isPlain = isAscii(text) && !text.includes(backslash)
    texts.set(placeholder, await (isPlain ? plainText : textOf)(text, turns))
  }
  rest.push(body.subarray(from))
  const short = Buffer.concat(rest)
  const again = new JsonScan('The body')
  again.add(short)
  await turns.yield()
  return filled(parseScanned(short, again), texts) as Record<string, unknown>
}

/** The text of a string of ASCII without escapes, such as base64: one string outside of the heap, where pieces would be as much again. */
async function plainText(bytes: Buffer, turns: Turns): Promise<string> {
  const text = bytes.toString('latin1')
  for (let at = 0; at < text.length; at += piece) {
    if (turns.due) await turns.yield()
    if (control.test(text.slice(at, at + piece))) throw malformed('The body is not valid JSON.')
  }
  return text
}

/** The text of a string from the bytes between its quotes. */
async function textOf(bytes: Buffer, turns: Turns): Promise<string> {
  let text = ''
  // half a surrogate pair whose other half may be in the next piece
  let half = ''
  for (let at = 0; at < bytes.length;) {
    if (turns.due) await turns.yield()
    const end = boundary(bytes, at, Math.min(bytes.length, at + piece))
    const part = half + parsed(decoded(bytes.subarray(at, end)))
    half = end < bytes.length ? (/[\ud800-\udbff]$/.exec(part.slice(-1))?.[0] ?? '') : ''
    const whole = half === '' ? part : part.slice(0, -1)
    requireText(whole)
    text += whole
    at = end
  }
  return text
}

/** The last possible end of a piece: between two characters, and not within an escape. */
function boundary(bytes: Buffer, start: number, wanted: number): number {
  if (wanted === bytes.length) return wanted
  let end = wanted
  const last = bytes.subarray(start, end).lastIndexOf(backslash)
  if (last !== -1 && start + last >= end - 5) {
    const at = start + last
    let first = at
    while (first > start && bytes[first - 1] === backslash) first -= 1
    const isEscape = (at - first) % 2 === 0
    const length = bytes[at + 1] === 0x75 ? 6 : 2
    if (isEscape && at + length > end) end = at
  }
  while (end > start && (bytes[end]! & 0xc0) === 0x80) end -= 1
  // invalid UTF-8
  return end > start ? end : wanted
}

function decoded(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw malformed('The body is not valid UTF-8.')
  }
}

function parsed(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    throw malformed('The body is not valid JSON.')
  }
}

/** Puts the texts in place of their placeholders. JsonScan limits the depth. */
function filled(value: unknown, texts: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return texts.get(value) ?? value
  if (typeof value !== 'object' || value === null) return value
  for (const [name, one] of Object.entries(value)) (value as Record<string, unknown>)[name] = filled(one, texts)
  return value
}
