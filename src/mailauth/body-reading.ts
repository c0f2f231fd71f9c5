import { isUtf8 } from 'node:buffer'
import { firstValue, headEnd, type HeaderField, headersOf, isSpace } from '../message/headers.ts'
import { mediaTypeIn, type ParameterizedValue, plainText } from '../message/mime/content-type.ts'
import { type Leaf, leavesOf, lineEnd } from '../message/mime/leaves.ts'

/**
 * Checks the fields that determine how the body is decoded (RFC 2045 3, RFC 2183) and that a signature does not cover. Returns why they may have been
 * changed, or null when every other value of theirs is impossible for the signed body, or shows the same text. `isSigned` returns whether the
 * signature covers all instances of a field. A body of one text is compared up to 1 MiB.
 */
export function unsignedAmbiguity(
  raw: Buffer,
  fields: readonly HeaderField[],
  isSigned: (name: string) => boolean,
): string | null {
  const disposition = firstValue(fields, 'content-disposition')
  if (disposition !== undefined && !isSigned('content-disposition') && disposition.toLowerCase() !== 'inline')
    return 'Content-Disposition is not signed, and is not unambiguously inline'
  const typeIsSigned = isSigned('content-type')
  const encodingIsSigned = isSigned('content-transfer-encoding')
  if (typeIsSigned && encodingIsSigned) return null
  const start = headEnd(raw)
  const value = firstValue(fields, 'content-type')
  const encoding = (firstValue(fields, 'content-transfer-encoding') ?? '7bit').toLowerCase()
  const type = value === undefined ? plainText : mediaTypeIn(value)
  const isWhole = raw.length - start <= longestText
  const isMultipartType = /^\s*multipart\//i.test(value ?? '')
  if (
    !encodingIsSigned &&
    !(isMultipartType ? identityEncoding.test(encoding) : isEncodedSo(encoding, type ?? unknownText, raw, start))
  )
    return 'Content-Transfer-Encoding is not signed, and is not plainly that of the body'
  if (typeIsSigned) return null
  const isOfBody =
    type !== null &&
    (value !== undefined || disposition === undefined) &&
    (type.name.startsWith('multipart/')
      ? isMultipart(raw, start, type) && isShownAs(type.name, raw, fields)
      : isWhole && isText(type, encoding, raw.toString('latin1', start)))
  return isOfBody ? null : 'Content-Type is not signed, and is not plainly that of the body'
}

/**
 * Why the body is ambiguous under a signature with relaxed canonicalization (RFC 6376 3.4.4), which ignores trailing white space and folds runs
 * of it. Spaces can turn a delimiter into text, and the empty line after the header of a part into a header line; a space in a boundary may be
 * two; a trailing space joins lines of format=flowed. Null when there are no such lines. Linear in the message.
 */
export function whitespaceAmbiguity(raw: Buffer, fields: readonly HeaderField[]): string | null {
  const type = firstValue(fields, 'content-type') ?? ''
  const start = headEnd(raw)
  if (isUnclear(type) && !hasSpacedBoundary(type)) return unclearType
  let flowing = flowingFrom(type, start)
  if (!/multipart/i.test(type)) return flowing && isJoined(raw, flowing, raw.length) ? joinedLines : null
  if (hasSpacedBoundary(type)) return boundaryWhitespace
  let declared: ReadonlySet<string> | null | undefined
  let lines = 0
  for (let at = raw.indexOf('\n--', start - 1); at !== -1; at = raw.indexOf('\n--', at)) {
    if (++lines > maxDashed) return twoWays
    const next = lineEnd(raw, at + 1)
    const isCut = next > at + 303
    const line = raw.toString('latin1', at + 3, Math.min(next, at + 303)).replace(/\r?\n$/, '')
    at = next - 1
    if (line === '' || isSpace(line.charCodeAt(0))) continue
    const header = headerFrom(raw, next)
    at = header.end - 1
    const text = raw.toString('latin1', next, header.end)
    const isSpaced = header.spaced || isCut || /[ \t]{2}|\t| $/.test(line)
    const flows = flowingFrom(text, header.end)
    const hasSpace = hasSpacedBoundary(text)
    const partFields = headersOf(raw.subarray(next, header.end))
    const isOther = partFields.some((field) => field.name === 'content-type' && isUnclear(field.value))
    if (!isSpaced && !hasSpace && !isOther && flows === null && flowing === null) continue
    declared = declared === undefined ? boundariesIn(raw) : declared
    if (declared === null) return twoWays
    const name = relaxed(line)
    if (!declared.has(name) && !declared.has(name.replace(/--$/, ''))) continue
    if (isSpaced) return twoWays
    if (hasSpace) return boundaryWhitespace
    if (isOther) return unclearType
    if (flowing && isJoined(raw, flowing, next)) return joinedLines
    flowing = flows
  }
  return flowing && isJoined(raw, flowing, raw.length) ? joinedLines : null
}

const unclearType = 'the parts of the body are ambiguous: a Content-Type has comments, escapes or encoded words'

/** True if a Content-Type has a comment or an escape outside of quoted strings, or an encoded word as its type: software reads these differently. */
function isUnclear(type: string): boolean {
  return /^[^;]*=\?|[(\\]/.test(type.replace(/"[^"\\]*"/g, '""'))
}

const twoWays = 'the parts of the body are ambiguous: a delimiter or a header ends with spaces'

export const boundaryWhitespace = 'the parts of the body are ambiguous: a boundary contains white space'

/** True if a boundary declared in these fields has white space, whose amount and kind a relaxed signature does not cover. */
export function hasSpacedBoundary(text: string): boolean {
  const declared = text
    .replace(/\r?\n(?=[ \t])/g, '')
    .matchAll(/\bboundary(?:\*\d{0,3}\*?)?\s*=\s*(?:"((?:[^"\\\r\n]|\\.){0,1000})|([^;"\r\n]{0,1000}))/gi)
  for (const [, quoted, plain = ''] of declared) if (/\s/.test(quoted ?? plain.trim())) return true
  return false
}

const joinedLines = 'the text is ambiguous: a space at the end of a line may join it with the next (format=flowed)'

/** A format=flowed text (RFC 3676). */
interface Flowing {
  start: number
  /** True if the space that joins two lines is deleted (`delsp`). */
  delsp: boolean
}

/** The text from `start` on, if these fields declare format=flowed, or another format in an unusual way (RFC 2231); else null. */
function flowingFrom(fields: string, start: number): Flowing | null {
  const isFlowed = /flowed|\bformat\s*(?:\*|=(?!\s*"?fixed\b))/i.test(fields)
  return isFlowed ? { start, delsp: /delsp/i.test(fields) } : null
}

/** True if trailing spaces before `end` join two numbers, or two words where such spaces are deleted. */
function isJoined(raw: Buffer, { start, delsp }: Flowing, end: number): boolean {
  const text = raw.toString('latin1', start, end)
  // except for the signature delimiter `-- `, which does not flow (RFC 3676 4.3)
  return /\d {1,998}\r?\n[> ]*\d/.test(text) || (delsp && /[^\s>](?<!^--) \r?\n[> ]*[^\s>]/m.test(text))
}

/** Bytes of a single text body that are compared with unsigned fields. */
const longestText = 1024 * 1024
/** The maximum number of lines that begin with `--`, and of declared boundaries. */
const maxDashed = 100_000
const maxDeclared = 1000
/** The longest boundary in characters (RFC 2046 5.1.1). */
const longestBoundary = 70

const identityEncoding = /^(?:7bit|8bit|binary)$/
/** For a Content-Type that cannot be read: a text in any charset. */
const unknownText: ParameterizedValue = { name: 'text/plain', params: new Map([['charset', 'unknown']]) }
const unicode = /^(?:us-ascii|utf-?8)?$/i
/** Characters of base64 that are no word or token which stands for itself. */
const longestToken = 63

/** True if the body from `start` on has this encoding, and with any other would show the same text, or be none. */
function isEncodedSo(encoding: string, { name, params }: ParameterizedValue, raw: Buffer, start: number): boolean {
  const text = raw.toString('latin1', start, start + longestText)
  const isWhole = start + text.length >= raw.length
  // whole lines only: in base64 their length is a multiple of four
  const body = isWhole ? text : text.slice(0, text.lastIndexOf('\n') + 1)
  const isUnicode = name.startsWith('text/') && unicode.test(params.get('charset') ?? '')
  const escapes = escapesIn(body)
  const letters = base64In(body) ?? ''
  const isToken = letters.length <= longestToken
  const mayBeBase64 = letters !== '' && (!isToken || isReadable(Buffer.from(letters, 'base64'), isUnicode))
  const mayHaveEscapes = escapes === 'sure' || (escapes === 'octets' && !isUnicode)
  if (identityEncoding.test(encoding)) return !mayHaveEscapes && !mayBeBase64
  if (!isWhole) return false
  if (encoding === 'base64') return !isToken
  if (encoding !== 'quoted-printable') return false
  // blanks at the end of a line are not part of it (RFC 2045 6.7)
  if (escapes === 'none') return !mayBeBase64 && !/[ \t]\r?\n/.test(body)
  // a text may quote escapes, but no source of HTML has them in its own tags
  return escapes === 'sure' && name === 'text/html' && /<[a-z][^<>]*=3D/i.test(body)
}

/** True if these bytes can be a text. */
function isReadable(octets: Buffer, isUnicode: boolean): boolean {
  // oxlint-disable-next-line no-control-regex
  return !/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]/.test(octets.toString('latin1')) && (!isUnicode || isUtf8(octets))
}

/** The characters of a text that is entirely base64; null for any other. */
function base64In(body: string): string | null {
  if (/\S[ \t]+\S/.test(body)) return null
  const letters = body.replace(/\s+/g, '')
  return letters.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(letters) ? letters : null
}

/**
 * Whether a text has escapes of quoted-printable. `octets`: only of single bytes above 127, which are no UTF-8. `foreign`: at least one `=`
 * begins no escape that encoders produce, such as the one in a URL with `?year=2026`.
 */
function escapesIn(body: string): 'none' | 'sure' | 'octets' | 'foreign' {
  if (!body.includes('=')) return 'none'
  if (/=(?![ \t]*$|(?:20|09)=?[ \t]*$|3D|[89A-F][\dA-F]|(?<=^=)(?:2E|46rom ))/m.test(body)) return 'foreign'
  return /=(?:[ \t]*$|[0-4]|[89A-F][\dA-F]=[89A-F][\dA-F])/m.test(body) ? 'sure' : 'octets'
}

/** True if the body is multipart throughout: nothing but the standard preamble before the first delimiter, and nothing after the last. */
function isMultipart(raw: Buffer, start: number, { name, params }: ParameterizedValue): boolean {
  const boundary = params.get('boundary') ?? ''
  // a line of dashes is usual in texts
  if (!subtypes.has(name) || boundary.length > longestBoundary || !/^[!-~]+$/.test(boundary) || !/[^-]/.test(boundary))
    return false
  const head = raw.toString('latin1', start, start + 1000)
  const [, preamble = '', opening] = /^((?:(?!--)[^\n]*\n)*)--([^\r\n]*)\r?\n/.exec(head) ?? []
  if (opening !== boundary || !/^(?:this is a multi-?part message in mime format\.?)?$/i.test(preamble.trim())) return false
  const tail = raw.toString('latin1', Math.max(start, raw.length - 1000)).trimEnd()
  return tail.endsWith(`\n--${boundary}--`)
}

const subtypes = new Set(['alternative', 'mixed', 'related', 'report', 'signed'].map((subtype) => `multipart/${subtype}`))

/**
 * True if every type of multipart shows the same, or the body can only be of this one: alternatives (RFC 2046 5.1.4) are a text and HTML of the same
 * words.
 */
function isShownAs(name: string, raw: Buffer, fields: readonly HeaderField[]): boolean {
  const bodies = leavesOf(raw, fields)?.filter(({ type, disposition }) => bodyTypes.has(type) && disposition !== 'attachment')
  if (bodies === undefined) return false
  const [first, ...others] = bodies.filter(({ around }) => around.slice(1).every(({ type }) => type !== alternative))
  const isNamed = bodies.some(({ filename }) => filename !== undefined)
  if (first === undefined || (!isNamed && bodies.every(({ type }) => type === first.type))) return true
  const areLikeAlternatives =
    !isNamed &&
    bodies.length === 1 + others.length &&
    first.type === 'text/plain' &&
    first.around.length === 1 &&
    others.every(({ type }) => type === 'text/html') &&
    (others.length === 1 || others.every(({ around }) => around.length > 1 && around[1] === others[0]!.around[1]))
  if (!areLikeAlternatives) return name !== alternative
  return (
    name === alternative &&
    haveSameWords(
      textOf(raw, first),
      others
        .map((leaf) => textOf(raw, leaf))
        .join('\n')
        .slice(0, longestText),
    )
  )
}

const alternative = 'multipart/alternative'
const bodyTypes = new Set(['text/plain', 'text/html'])

/** The decoded bytes of a part, one character each. */
function textOf(raw: Buffer, { encoding, start, end }: Leaf): string {
  return decoded(raw.toString('latin1', start, Math.min(end, start + longestText)), encoding)
}

/** True if at least half of the words of a text are in the source of HTML. */
function haveSameWords(text: string, html: string): boolean {
  const found = wordsIn(html)
  const words = [...wordsIn(text)]
  return words.filter((word) => found.has(word)).length * 2 >= words.length
}

/** Words of ASCII letters and digits, and single characters of other scripts in UTF-8. */
function wordsIn(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\da-z]{3,}|[\xc2-\xf4][\x80-\xbf]+/g))
}

/**
 * True if the body is one text: not the source of another type, without an unusual charset or a file name, and the same in other charsets and with
 * format=flowed (RFC 3676).
 */
function isText({ name, params }: ParameterizedValue, encoding: string, body: string): boolean {
  if ([...params.keys()].some((key) => key !== 'charset' && (key !== 'format' || name !== 'text/plain'))) return false
  const charset = params.get('charset') ?? ''
  if (!/^(?:us-ascii|utf-8|iso-8859-\d{1,2}|windows-125\d)?$/i.test(charset)) return false
  // other decoders do not stop at what is no base64
  if (encoding === 'base64' && base64In(body) === null) return false
  const text = decoded(body, encoding)
  if (/[\x80-\xff]/.test(text) && !(unicode.test(charset) && isUtf8(Buffer.from(text, 'latin1')))) return false
  if (name === 'text/html') return /^\s*<(?:!doctype\s+html|html|head|body)\b/i.test(text)
  return name === 'text/plain' && !markup.test(text) && !isSource(text) && !flowable.test(text)
}

/**
 * A line that format=flowed joins with the next, except for the signature delimiter `-- ` and for an empty line within a quotation; or a quotation
 * after a space, which it takes away.
 */
const flowable = /(?<!^--|^>[> ]*(?= \r?\n>)) \r?\n|^ >/m

/** A tag or a character reference, as in the source of HTML. Addresses and links in angle brackets are neither. */
const markup =
  /<(?![^\0- <>@"'/&]{1,250}@[^\0- <>@"'/&]{1,255}>|(?:https?:\/\/|mailto:)[^\0- <>"'`]{1,2000}>)[a-z!/?]|&(?:#|[a-z][a-z\d]{1,31};)/i

/** The decoded bytes of a text, one character each. */
function decoded(body: string, encoding: string): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('latin1')
  if (encoding !== 'quoted-printable') return body
  return body
    .replace(/=[ \t]*\r?\n/g, '')
    .replace(/=([\dA-F]{2})/gi, (_, octet: string) => String.fromCharCode(Number.parseInt(octet, 16)))
}

/** True if text contains the source of a multipart body: a delimiter followed by the header of a part, or by the closing delimiter. */
function isSource(text: string): boolean {
  if (/^--.+\r?\ncontent-[a-z-]+[ \t]*:/im.test(text)) return true
  const opened = new Set<string>()
  for (const [, line = ''] of text.matchAll(/^--([^\s][^\r\n]{0,200})/gm)) {
    const delimiter = line.trimEnd()
    if (/[^-]/.test(delimiter) && delimiter.endsWith('--') && opened.has(delimiter.slice(0, -2))) return true
    opened.add(delimiter)
    if (opened.size > maxDeclared) return true
  }
  return false
}

/** The header of a part from `start` to the empty line, or to a line that begins with `--`. `spaced`: it contains a line of nothing but spaces. */
function headerFrom(raw: Buffer, start: number): { end: number; spaced: boolean } {
  let spaced = false
  for (let at = start; at < raw.length;) {
    const next = lineEnd(raw, at)
    let first = at
    while (first < next && isSpace(raw[first]!)) first++
    const isBlank = first === next || raw[first] === 0x0a || (raw[first] === 0x0d && first === next - 2)
    if (isBlank && first === at) return { end: next, spaced }
    if (isBlank) spaced = true
    if (raw[at] === 0x2d && raw[at + 1] === 0x2d) return { end: at, spaced }
    at = next
  }
  return { end: raw.length, spaced }
}

/**
 * All boundaries declared in the message, with relaxed white space. Null when they cannot be determined: too many, continued, too long (RFC 2046
 * 5.1.1), or with escapes or encoded words.
 */
function boundariesIn(raw: Buffer): ReadonlySet<string> | null {
  const found = new Set<string>()
  for (const [, continued, quoted, plain] of raw
    .toString('latin1')
    .matchAll(/boundary(\*)?[^\s=]{0,5}\s*=\s*(?:\([^()\r\n]{0,200}\)\s*)?(?:"([^"\r\n]{1,200})|([^\s;"]{1,200}))/gi)) {
    const boundary = relaxed(quoted ?? plain ?? '')
    if (continued !== undefined || found.size > maxDeclared || boundary.length > longestBoundary) return null
    if (/\\|=\?/.test(boundary)) return null
    found.add(boundary)
    // it may be followed by a comment
    if (plain?.includes('(')) found.add(plain.slice(0, plain.indexOf('(')))
  }
  return found
}

function relaxed(line: string): string {
  return line.replace(/[ \t]+/g, ' ').trimEnd()
}
