import { type HeaderField, headersOf } from '../headers.ts'
import { maxLines } from './body-text.ts'
import { parseWithLibrary } from './mailparser.ts'
import type { Mime } from './model.ts'
import { plainMime } from './plain.ts'

/** The message up to the maximum number of lines, as parsing time grows with lines. Attachments of 50 MB have fewer. */
export function upToLineLimit(raw: Buffer): Buffer {
  if (raw.length <= maxLines) return raw
  let at = 0
  for (let lines = 0; lines < maxLines; lines++) {
    at = raw.indexOf(0x0a, at) + 1
    if (at === 0) return raw
  }
  return raw.subarray(0, at)
}

/**
 * Parses the MIME structure of a message; rejects when that fails. `fields` is its header. What all software reads in the same way is read here, in
 * a fraction of the time; everything else is left to the library.
 */
export async function parseMime(raw: Buffer, fields: readonly HeaderField[] = headersOf(raw)): Promise<Mime> {
  return plainMime(raw, fields) ?? (await parseWithLibrary(raw, fields))
}
