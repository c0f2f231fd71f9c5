import { type HeaderField, headEnd } from '../headers.ts'
import { leavesOf } from './leaves.ts'

/** What a message has outside of the bodies of its parts: preambles and epilogues (RFC 2046 5.1.1), and headers. */
export interface OutsideBodies {
  /** Before the first and behind the last part of a multipart, which some software displays. */
  text: string
  /** The header fields of the parts. */
  headers: string
}

/** Null where software differs in what the parts of a message are. */
export function outsideBodies(raw: Buffer, fields: readonly HeaderField[]): OutsideBodies | null {
  const leaves = leavesOf(raw, fields)
  if (leaves === null) return null
  const found: OutsideBodies = { text: '', headers: '' }
  const boundaries = new Set(leaves.flatMap(({ around }) => around.map(({ boundary }) => boundary)))
  let at = Math.min(headEnd(raw), raw.length)
  for (const { start, end } of [...leaves, { start: raw.length, end: raw.length }]) {
    addBetween(raw.toString('utf8', at, start), boundaries, found)
    at = end
  }
  return found
}

/** Adds what is between two bodies: after a boundary the header of a part, and else a preamble or epilogue. */
function addBetween(between: string, boundaries: ReadonlySet<string>, found: OutsideBodies): void {
  let into: keyof OutsideBodies = 'text'
  const kept: Record<keyof OutsideBodies, string[]> = { text: [], headers: [] }
  for (const line of between.split(/\r?\n/)) {
    if (line.startsWith('--') && boundaries.has(line.slice(2))) into = 'headers'
    else if (line.startsWith('--') && line.endsWith('--') && boundaries.has(line.slice(2, -2))) into = 'text'
    else if (line === '') into = 'text'
    else kept[into].push(line)
  }
  for (const one of ['text', 'headers'] as const) found[one] += `${kept[one].join('\n')}\n`
}

/** True if a text has a file written in its lines. */
export function hasWrittenFile(text: string): boolean {
  return /^(?:begin(?:-base64)? [0-7]{3,4} \S|=ybegin )/im.test(text)
}

/** True if a file, or a part that is none, is written outside of the bodies. */
export function hasOutsideFile({ text }: OutsideBodies): boolean {
  return hasWrittenFile(text) || /^content-(?:type|disposition|transfer-encoding)[ \t]{0,9}:/im.test(text)
}

/** True if a field that says how a part is read stands twice in one header, wherever that is: some software takes the first, some the last. */
export function repeatsFields(raw: Buffer): boolean {
  const seen = new Set<string>()
  for (const [, name] of raw.toString('latin1').matchAll(fieldsOfParts)) {
    const key = name?.toLowerCase()
    if (key === undefined) seen.clear()
    else if (seen.has(key)) return true
    else seen.add(key)
  }
  return false
}

/** A field of MIME, or an empty line, which ends a header. */
const fieldsOfParts = /(?<![^\n])(?:(content-(?:type|transfer-encoding|disposition))\s{0,9}:|\r?\n)/gi
