import { type HeaderField, headersOf } from './headers.ts'
import { parseWithLibrary } from './mailparser.ts'
import { plainMime } from './plain-mime.ts'

/** An attachment of a message. */
export interface File {
  /** Lower case; empty for a part without a valid type. */
  contentType: string
  filename: string | undefined
  /** Lower case. */
  contentDisposition: string | undefined
  /** The Content-ID without its angle brackets. */
  cid: string | undefined
  /** True if it has a Content-ID and is inside of a multipart/related. */
  related: boolean
  /** Octets of the content. */
  size: number
  /** SHA-256 of the content, in hexadecimal. */
  checksum: string
  /** Decoded; may be decoded anew each time. */
  readonly content: Buffer
}

/** The parsed MIME structure of a message. */
export interface Mime {
  subject: string | undefined
  text: string | undefined
  html: string | undefined
  files: File[]
  /**
   * True if HTML and text are not alternatives of each other (RFC 2046 5.1.4), such as a footer added by a mailing list. Then both are the
   * message.
   */
  areSeparateBodies: boolean
}

const maxLines = 1_200_000

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
