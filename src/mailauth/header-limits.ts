import { headEnd, type HeaderField } from '../message/headers.ts'
import type { Header } from './author.ts'

/** The most signatures, and ARC sets, that are verified. */
export const maxSignatures = 10
export const maxSeals = 5
/** Signatures with `l=` that are checked. They never count, and the body is hashed again for each length. */
const maxWithLength = 1
/** Fields in the `h=` tag of one signature. Ordinary signatures have about twenty. */
const maxNamed = 300
/** Length of a run of blanks or dots: a line has at most 998 octets and does not consist of blanks (RFC 5322 2.1.1 and 3.2.2). */
const longestRun = 2000
/** Characters that the verifier trims: blanks of tags and names, dots of domains. */
const trimmed = new Set([0x09, 0x0a, 0x0d, 0x20, 0x2e])

/** The fields with this name, in lower case. */
export function named(header: Header, name: string): HeaderField[] {
  return header.fields.filter((field) => field.name === name)
}

/**
 * Fields not to be verified: DKIM-Signature fields beyond the tenth, with too many names, or beyond the first with `l=`; and all ARC fields when
 * there are more than five of a kind, or one has too many names.
 */
export function excessOf(header: Header): { fields: Set<HeaderField>; seals: boolean } {
  const sets = ['arc-seal', 'arc-message-signature', 'arc-authentication-results'].map((name) => named(header, name))
  const seals = sets.some((set) => set.length > maxSeals) || sets[1]!.some(namesTooMany)
  const signatures = named(header, 'dkim-signature')
  const considered = signatures.slice(0, maxSignatures)
  const limited = considered.filter(({ value }) => /(?:^|;)\s*l\s*=/.test(value)).slice(maxWithLength)
  const excess = [...signatures.slice(maxSignatures), ...considered.filter(namesTooMany), ...limited]
  return { fields: new Set([...excess, ...(seals ? sets.flat() : [])]), seals }
}

function namesTooMany({ value }: HeaderField): boolean {
  let at = -1
  for (let colons = 0; colons < maxNamed; colons++) {
    at = value.indexOf(':', at + 1)
    if (at === -1) return false
  }
  return true
}

/**
 * True if the blanks and dots of a header cost the verifier more than one run of the maximum length: it trims names, tags and domains in
 * quadratic time for each run. Checks the whole header, as the verifier appends lines that are not fields to the field above.
 */
export function hasLongRuns(raw: Buffer): boolean {
  const end = Math.min(headEnd(raw), raw.length)
  let cost = 0
  for (let at = 0, start = 0; at <= end; at += 1) {
    if (at < end && trimmed.has(raw[at]!)) continue
    cost += (at - start) ** 2
    start = at + 1
  }
  return cost > longestRun ** 2
}

/** The message without these fields. */
export function without(raw: Buffer, fields: Set<HeaderField>): Buffer {
  if (fields.size === 0) return raw
  const kept: Buffer[] = []
  let position = 0
  for (const field of [...fields].toSorted((one, other) => one.start - other.start)) {
    kept.push(raw.subarray(position, field.start))
    position = field.end
  }
  return Buffer.concat([...kept, raw.subarray(position)])
}
