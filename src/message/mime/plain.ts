import { createHash } from 'node:crypto'
import { dispositionIn, mediaTypeIn, plainText } from './content-type.ts'
import { firstValue, headEnd, type HeaderField, headersOf } from '../headers.ts'
import { decodeWords } from './mailparser.ts'
import type { File, Mime } from './model.ts'
import { decodeQuotedPrintable } from './quoted-printable.ts'
import { TextLimit, unixText } from './body-text.ts'

/** A part that is not multipart. */
interface Leaf {
  /** `text/plain`; lower case. */
  type: string
  disposition: 'inline' | 'attachment' | undefined
  filename: string | undefined
  cid: string | undefined
  encoding: Encoding
  /** True if its text is US-ASCII or UTF-8, and its lines do not flow. */
  isPlainText: boolean
  /** The multipart parts around it, the outermost first. */
  around: readonly Multipart[]
  start: number
  end: number
}

interface Multipart {
  /** `multipart/mixed`; lower case. */
  type: string
  boundary: string
}

type Encoding = 'identity' | 'base64' | 'quoted-printable'

/** Lines that begin with `--` and are not delimiters, after which a message is left to the library. */
const maxDashed = 10_000
const maxParts = 1000
/** Octets of a header of a part. */
const maxPartHeader = 16 * 1024
/** The longest boundary in characters (RFC 2046 5.1.1). */
const longestBoundary = 70
/** Octets of an attachment that are decoded at once. */
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
      bodies.push({ leaf, text: unixText(limit.take(octets)) })
    } else {
      const file = fileOf(raw, leaf)
      if (file === null) return null
      files.push(file)
    }
  }
  return { subject, files, ...joined(bodies), isCut: limit.isExceeded }
}

/** The decoded subject; null if it has controls, or octets that are not UTF-8. */
function plainSubject(fields: readonly HeaderField[]): string | undefined | null {
  const field = fields.find(({ name }) => name === 'subject')
  if (field === undefined || field.value === '') return undefined
  return field.isUtf8 && !/\p{Cc}/u.test(field.value) ? decodeWords(field.value) : null
}

/** The leaves of a message in order; null if there are two readings. */
function leavesOf(raw: Buffer, fields: readonly HeaderField[]): Leaf[] | null {
  const start = Math.min(headEnd(raw), raw.length)
  const root = partOf(fields, [], start)
  if (root === null) return null
  if (!isMultipart(root)) return [{ ...root, end: raw.length }]
  // a bare CR before a delimiter
  if (raw.includes('\n\r--')) return null
  const leaves: Leaf[] = []
  const open = [root]
  const boundaries = new Set([root.boundary])
  /** The part at this position: null between the parts of a multipart. */
  let current: Leaf | Multipart | null = root
  let parts = 1
  let dashed = 0
  for (let at = nextDashed(raw, start); at !== -1;) {
    const end = lineEnd(raw, at)
    const line = end - at > longestBoundary + 10 ? '' : raw.toString('latin1', at + 2, end)
    const text = line.replace(/\r?\n$/, '')
    const expected: Multipart | undefined = open.at(-1)
    const isClosing: boolean = text === `${expected?.boundary}--`
    if (expected === undefined || !(isClosing || text === expected.boundary)) {
      if (++dashed > maxDashed || isNearly(text, boundaries)) return null
      at = nextDashed(raw, end)
      continue
    }
    if (current === expected) {
      // a multipart without parts
      if (isClosing) return null
    } else if (current !== null && !isMultipart(current)) {
      const bodyEnd = withoutLineEnd(raw, at)
      // the library takes a body of one line end for one, and for none
      if (bodyEnd === current.start) return null
      leaves.push({ ...current, end: Math.max(current.start, bodyEnd) })
    }
    current = null
    if (isClosing) {
      open.pop()
      at = nextDashed(raw, end)
      continue
    }
    const rest = raw.subarray(end)
    const length = headEnd(rest)
    if (line === text || ++parts > maxParts || length > maxPartHeader) return null
    if (!endsEmpty(rest, length) || hasDashedLine(rest, length)) return null
    current = partOf(headersOf(rest.subarray(0, length)), open, end + length)
    if (current === null) return null
    if (isMultipart(current)) {
      if (boundaries.has(current.boundary)) return null
      boundaries.add(current.boundary)
      open.push(current)
    }
    at = nextDashed(raw, end + length)
  }
  return open.length === 0 ? leaves : null
}

function isMultipart(part: Leaf | Multipart): part is Multipart {
  return 'boundary' in part
}

/** True if a line is no delimiter that is expected here, but may be one to other software. */
function isNearly(text: string, boundaries: ReadonlySet<string>): boolean {
  const [name = ''] = text.split(/[ \t\r]/, 1)
  return boundaries.has(name) || boundaries.has(name.replace(/--$/, ''))
}

/** The offset of the next line that begins with `--`, from the start of a line; -1 if there is none. */
function nextDashed(raw: Buffer, from: number): number {
  if (raw[from] === dash && raw[from + 1] === dash) return from
  const found = raw.indexOf('\n--', from)
  return found === -1 ? -1 : found + 1
}

function lineEnd(raw: Buffer, from: number): number {
  const end = raw.indexOf(0x0a, from)
  return end === -1 ? raw.length : end + 1
}

/** The line end before a delimiter belongs to it (RFC 2046 5.1.1). */
function withoutLineEnd(raw: Buffer, at: number): number {
  return raw[at - 2] === 0x0d ? at - 2 : at - 1
}

/** True if a header ends with an empty line. */
function endsEmpty(raw: Buffer, length: number): boolean {
  const end = raw.toString('latin1', Math.max(0, length - 4), length)
  return /(?:^|\n)\r?\n$/.test(end)
}

function hasDashedLine(raw: Buffer, length: number): boolean {
  const at = nextDashed(raw, 0)
  return at !== -1 && at < length
}

const dash = 0x2d

/** The part with this header; null if its fields have two readings. */
function partOf(fields: readonly HeaderField[], around: readonly Multipart[], start: number): Leaf | Multipart | null {
  const [type, disposition, encoding, id] = neededFields.map((name) => firstValue(fields, name))
  if (type === undefined && disposition !== undefined) return null
  const media = type === undefined ? plainText : mediaTypeIn(type)
  const placing = disposition === undefined ? undefined : dispositionIn(disposition)
  const coding = encodings.get(encoding?.toLowerCase() ?? '7bit')
  if (media === null || placing === null || coding === undefined) return null
  if ([...media.params.values(), ...(placing?.params.values() ?? [])].some((value) => value.includes('  '))) return null
  const boundary = media.params.get('boundary')
  if (media.name.startsWith('multipart/')) {
    if (boundary === undefined || boundary === '' || boundary.length > longestBoundary || /\s|--$/.test(boundary)) return null
    return coding === 'identity' ? { type: media.name, boundary } : null
  }
  if (boundary !== undefined || media.name.startsWith('message/partial')) return null
  const cid = id === undefined ? undefined : plainId.exec(id)?.[1]
  if (id !== undefined && cid === undefined) return null
  const shown = placing?.name
  if (shown !== undefined && shown !== 'inline' && shown !== 'attachment') return null
  return {
    type: media.name,
    disposition: shown,
    filename: placing?.params.get('filename') || media.params.get('name') || undefined,
    cid,
    encoding: coding,
    isPlainText: /^(?:us-?ascii|utf-?8)?$/i.test(media.params.get('charset') ?? '') && !media.params.has('format'),
    around: [...around],
    start,
    end: start,
  }
}

const neededFields = ['content-type', 'content-disposition', 'content-transfer-encoding', 'content-id']

const encodings = new Map<string, Encoding>([
  ['7bit', 'identity'],
  ['8bit', 'identity'],
  ['binary', 'identity'],
  ['base64', 'base64'],
  ['quoted-printable', 'quoted-printable'],
])

const plainId = /^<([^\0- <>()"\\\x7f-\uffff]+)>$/

/** True if a leaf is displayed as text. An inline text with a file name is an attachment, except as an alternative. */
function isBody({ type, disposition, filename, around }: Leaf): boolean {
  if (type !== 'text/plain' && type !== 'text/html') return false
  if (disposition === undefined) return true
  if (disposition === 'attachment') return false
  return filename === undefined || around.length === 0 || around.at(-1)!.type === 'multipart/alternative'
}

/** Octets of a leaf, decoded; null if they are not encoded as declared. */
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
  const { type, disposition, filename, cid, around } = leaf
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

/** The decoded octets of a leaf in pieces, so that a large attachment is not in memory as a whole. */
function* piecesOf(raw: Buffer, leaf: Leaf): Generator<Buffer | null> {
  const length = leaf.encoding === 'quoted-printable' ? Infinity : pieceLength
  for (let { start } = leaf; start < leaf.end;) {
    const next = start + length < leaf.end ? lineEnd(raw, start + length) : leaf.end
    const end = Math.min(next, leaf.end)
    const piece = decoded(raw, { ...leaf, start, end })
    // four letters are three octets: a piece that ends within them is not decoded as what it is
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
