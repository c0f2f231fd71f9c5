import { createHash } from 'node:crypto'
import type { HeaderField } from '../headers.ts'
import { type Leaf, leavesOf, lineEnd } from './leaves.ts'
import { decodeWords } from './mailparser.ts'
import type { File, Mime } from './model.ts'
import { decodeQuotedPrintable } from './quoted-printable.ts'
import { guessedUtf8, isUndeclared, TextLimit, unixText } from './body-text.ts'

/** Bytes of an attachment that are decoded at once. */
const pieceLength = 1024 * 1024

/**
 * The MIME structure of a message that all software reads in the same way, as the library would read it; null for any other: unusual fields,
 * charsets or encodings, parts that are not closed, and whatever has two readings.
 */
export function plainMime(raw: Buffer, fields: readonly HeaderField[]): Mime | null {
  const subject = plainSubject(fields)
  const leaves = subject === null ? null : leavesOf(raw, fields)
  if (subject === null || leaves === null) return null
  const files: File[] = []
  const bodies: { leaf: Leaf; text: string }[] = []
  const limit = new TextLimit()
  for (const leaf of leaves) {
    if (isBody(leaf)) {
      const octets = leaf.isPlainText ? decoded(raw, leaf) : null
      if (octets === null) return null
      const read = limit.take(octets)
      bodies.push({ leaf, text: unixText(isUndeclared(leaf.charset) ? guessedUtf8(read, limit.isExceeded) : read) })
    } else {
      const file = fileOf(raw, leaf)
      if (file === null) return null
      files.push(file)
    }
  }
  return { subject, files, ...joined(bodies), isCut: limit.isExceeded }
}

/** The decoded subject; null if it has controls, or bytes that are not UTF-8. */
function plainSubject(fields: readonly HeaderField[]): string | undefined | null {
  const field = fields.find(({ name }) => name === 'subject')
  if (field === undefined || field.value === '') return undefined
  if (!field.isUtf8 || /\p{Cc}/u.test(field.value)) return null
  return decodeWords(field.value) || undefined
}

/** True if a leaf is displayed as text. An inline text with a file name is an attachment, except as an alternative. */
function isBody({ type, disposition, filename, around }: Leaf): boolean {
  if (type !== 'text/plain' && type !== 'text/html') return false
  if (disposition === undefined) return true
  if (disposition === 'attachment') return false
  return filename === undefined || around.length === 0 || around.at(-1)!.type === 'multipart/alternative'
}

/** Bytes of a leaf, decoded; null if they are not encoded as declared. */
function decoded(raw: Buffer, { encoding, start, end }: Leaf): Buffer | null {
  if (encoding === 'base64') return decodeBase64(raw, start, end)
  const octets = raw.subarray(start, end)
  // decodes in place
  return encoding === 'quoted-printable' ? decodeQuotedPrintable(Buffer.from(octets)) : octets
}

/** Decodes base64; null if there is anything but its letters, padding at the end, and line ends. */
function decodeBase64(raw: Buffer, start: number, end: number): Buffer | null {
  const text = raw.toString('latin1', start, end)
  let length = text.length
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) length -= text.charCodeAt(at - 1) === 0x0d ? 2 : 1
  const last = text.slice(-64).trimEnd()
  const padding = last.endsWith('==') ? 2 : last.endsWith('=') ? 1 : 0
  const letters = length - padding
  if (letters % 4 === 1 || (padding > 0 && length % 4 !== 0) || /[-_]/.test(text)) return null
  const octets = Buffer.from(text, 'base64')
  // what is not a letter is left out
  return octets.length === Math.floor((letters * 3) / 4) ? octets : null
}

/** An attachment; null if it is not encoded as declared. */
function fileOf(raw: Buffer, leaf: Leaf): File | null {
  const { type, disposition, filename, charset, cid, around } = leaf
  // the library looks for a better type by the name
  if (type === 'application/octet-stream' && filename !== undefined) return null
  const hash = createHash('sha256')
  let size = 0
  for (const piece of piecesOf(raw, leaf)) {
    if (piece === null) return null
    hash.update(piece)
    size += piece.length
  }
  return {
    contentType: type,
    filename,
    charset,
    contentDisposition: disposition,
    cid,
    related: cid !== undefined && around.some((part) => part.type === 'multipart/related'),
    size,
    checksum: hash.digest('hex'),
    get content(): Buffer {
      return Buffer.concat([...piecesOf(raw, leaf)].map((piece) => piece!))
    },
  }
}

/** The decoded bytes of a leaf in pieces, so that a large attachment is not in memory as a whole. */
function* piecesOf(raw: Buffer, leaf: Leaf): Generator<Buffer | null> {
  const length = leaf.encoding === 'quoted-printable' ? Infinity : pieceLength
  for (let { start } = leaf; start < leaf.end;) {
    const next = start + length < leaf.end ? lineEnd(raw, start + length) : leaf.end
    const end = Math.min(next, leaf.end)
    const piece = decoded(raw, { ...leaf, start, end })
    // four letters are three bytes: a piece that ends within them is not decoded as what it is
    yield piece !== null && leaf.encoding === 'base64' && end < leaf.end && piece.length % 3 !== 0 ? null : piece
    start = end
  }
}

/** The bodies as the library joins them: those that are not alternatives of each other stand one after the other. */
function joined(bodies: readonly { leaf: Leaf; text: string }[]): Pick<Mime, 'text' | 'html' | 'areSeparateBodies'> {
  const hasText = bodies.some(({ leaf }) => leaf.type === 'text/plain')
  const hasHtml = bodies.some(({ leaf }) => leaf.type === 'text/html')
  const texts: string[] = []
  const htmls: string[] = []
  for (const { leaf, text } of bodies) {
    if (text === '') continue
    const isAlternative = leaf.around.some(({ type }) => type === 'multipart/alternative')
    if (leaf.type === 'text/plain') {
      texts.push(text)
      if (!isAlternative && hasHtml) htmls.push('')
    } else {
      if ((!isAlternative && hasText) || (leaf.around.length === 0 && !hasText)) texts.push('')
      htmls.push(text)
    }
  }
  const text = texts.length > 0 ? texts.join('\n') : undefined
  const html = htmls.join('<br/>\n') || undefined
  const alternativesOf = (type: string) =>
    bodies.flatMap(({ leaf }) => (leaf.type === type ? leaf.around.filter((part) => part.type === 'multipart/alternative') : []))
  const ofHtml = new Set(alternativesOf('text/html'))
  const areAlternatives = alternativesOf('text/plain').some((part) => ofHtml.has(part))
  return { text, html, areSeparateBodies: text !== undefined && html !== undefined && !areAlternatives }
}
