import { firstValue, headEnd, type HeaderField, headersOf } from '../headers.ts'
import { dispositionIn, mediaTypeIn, plainText } from './content-type.ts'

/** A part that is not multipart. */
export interface Leaf {
  /** `text/plain`; lower case. */
  type: string
  disposition: 'inline' | 'attachment' | undefined
  filename: string | undefined
  charset: string | undefined
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
/** Bytes of a header of a part. */
const maxPartHeader = 16 * 1024
/** The longest boundary in characters (RFC 2046 5.1.1). */
const longestBoundary = 70

/** The leaves of a message in order; null if there are two readings. */
export function leavesOf(raw: Buffer, fields: readonly HeaderField[]): Leaf[] | null {
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
    const header = rest.subarray(0, length)
    if (!endsEmpty(header) || nextDashed(header, 0) !== -1) return null
    current = partOf(headersOf(header), open, end + length)
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

/** The offset after the line end. */
export function lineEnd(raw: Buffer, from: number): number {
  const end = raw.indexOf(0x0a, from)
  return end === -1 ? raw.length : end + 1
}

/** The line end before a delimiter belongs to it (RFC 2046 5.1.1). */
function withoutLineEnd(raw: Buffer, at: number): number {
  return raw[at - 2] === 0x0d ? at - 2 : at - 1
}

/** True if a header ends with an empty line. */
function endsEmpty(header: Buffer): boolean {
  return /(?:^|\n)\r?\n$/.test(header.toString('latin1', Math.max(0, header.length - 4)))
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
    charset: media.params.get('charset'),
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
