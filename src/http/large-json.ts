import { randomUUID } from 'node:crypto'
import { JsonScan, usualBounds } from '../core/json-scan.ts'
import { Turns } from '../core/paced-work.ts'
import { malformed, parseScanned, requireText } from './json.ts'

/** Octets of a body that is parsed in pieces. */
const large = 1024 * 1024

/** Octets of the longest string that is not parsed apart: no key is longer. There are at most as many strings as tokens, so that all these are 10 MB. */
const long = 1024 + 2

/** Octets of a string that are parsed at a time: some 3 ms where all of them are escapes. */
const piece = 512 * 1024

const quote = 0x22
const backslash = 0x5c

/** A body keeps what it says of the order of octets; a piece does not begin with it. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * As `parseScanned`. Of a large body the long strings are parsed apart, a piece at a time with other work in between: 40 MiB at once would hold
 * the main thread for 60 ms, or 120 ms where they are escapes.
 */
export async function parseInTurns(bytes: Uint8Array, scan: JsonScan): Promise<Record<string, unknown>> {
  if (bytes.length <= large) return parseScanned(bytes, scan)
  // more strings than tokens, and what is left would not be short
  if (scan.isInString || scan.ends.length > usualBounds.tokens) throw malformed('The body is not valid JSON.')
  const turns = new Turns()
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  // nobody can have written it
  const name = randomUUID()
  const texts = new Map<string, string>()
  const rest: Buffer[] = []
  let from = 0
  let at = 0
  for (const end of scan.ends) {
    const start = body.indexOf(quote, at)
    at = end
    if (end - start <= long) continue
    const place = `${name} ${texts.size}`
    rest.push(body.subarray(from, start), Buffer.from(`"${place}"`))
    from = end
    texts.set(place, await textOf(body.subarray(start + 1, end - 1), turns))
  }
  rest.push(body.subarray(from))
  const short = Buffer.concat(rest)
  const again = new JsonScan('The body')
  again.add(short)
  await turns.yield()
  return filled(parseScanned(short, again), texts) as Record<string, unknown>
}

/** What a string says, of the octets between its quotes. */
async function textOf(octets: Buffer, turns: Turns): Promise<string> {
  let text = ''
  // half a surrogate pair whose other half may be in the next piece
  let half = ''
  for (let at = 0; at < octets.length;) {
    if (turns.due) await turns.yield()
    const end = boundary(octets, at, Math.min(octets.length, at + piece))
    const part = half + parsed(decoded(octets.subarray(at, end)))
    half = end < octets.length ? (/[\ud800-\udbff]$/.exec(part.slice(-1))?.[0] ?? '') : ''
    const whole = half === '' ? part : part.slice(0, -1)
    requireText(whole)
    text += whole
    at = end
  }
  return text
}

/** Where a piece can end that should end here: between two characters, and behind an escape. */
function boundary(octets: Buffer, start: number, wanted: number): number {
  if (wanted === octets.length) return wanted
  let end = wanted
  const last = octets.subarray(start, end).lastIndexOf(backslash)
  if (last !== -1 && start + last >= end - 5) {
    const at = start + last
    let first = at
    while (first > start && octets[first - 1] === backslash) first -= 1
    const isEscape = (at - first) % 2 === 0
    const length = octets[at + 1] === 0x75 ? 6 : 2
    if (isEscape && at + length > end) end = at
  }
  while (end > start && (octets[end]! & 0xc0) === 0x80) end -= 1
  // of what is no UTF-8
  return end > start ? end : wanted
}

function decoded(octets: Buffer): string {
  try {
    return utf8.decode(octets)
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

/** No deeper than JsonScan lets it be. */
function filled(value: unknown, texts: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return texts.get(value) ?? value
  if (typeof value !== 'object' || value === null) return value
  for (const [name, one] of Object.entries(value)) (value as Record<string, unknown>)[name] = filled(one, texts)
  return value
}
