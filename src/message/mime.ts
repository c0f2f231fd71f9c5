import { Readable, type Transform } from 'node:stream'
import { type AttachmentStream, MailParser, parseAddressHeader } from 'mailparser'
import { headEnd, type HeaderField, headerLimit, headersOf } from './headers.ts'
import { quotedPrintableDecoder } from './quoted-printable.ts'

/** A file in a message, its octets decoded. */
export type File = Omit<AttachmentStream, 'content'> & { content: Buffer }

/** A message taken apart. */
export interface Mime {
  subject: string | undefined
  text: string | undefined
  html: string | undefined
  files: File[]
  /** HTML and text are no alternatives of each other (RFC 2046 5.1.4), such as the footer a mailing list adds: both are the message. */
  beside: boolean
}

/** Octets of a message up to the line where it is too many: every line costs, and attachments of 50 MB have less. */
export function readable(raw: Buffer): Buffer {
  let at = 0
  for (let lines = 0; lines < maxLines; lines++) {
    at = raw.indexOf(0x0a, at) + 1
    if (at === 0) return raw
  }
  return raw.subarray(0, at)
}

/**
 * Takes a message apart; rejects when that cannot be done. `fields` is its header. The library is given the first of each field that it needs, so
 * that no line is a field to it and none to us, and it reads none of the addresses, which are read elsewhere.
 */
export async function takeApart(raw: Buffer, fields: readonly HeaderField[] = headersOf(raw)): Promise<Mime> {
  const parser = new MailParser({
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
    skipTextLinks: true,
    keepDeliveryStatus: true,
    ignoreEmbedded: true,
    maxHeadSize: headerLimit,
    checksumAlgo: 'sha256',
  })
  withPlainHeaders(parser)
  const bodies = bodiesOf(parser)
  const mime: Mime = { subject: undefined, text: undefined, html: undefined, files: [], beside: false }
  const body = raw.subarray(Math.min(headEnd(raw), raw.length))
  // Then nothing ends the attachment that is being read: the library only says so of the whole message.
  let failure: Error | undefined
  let open: Readable | undefined
  parser.on('error', (error: Error) => {
    failure = error
    open?.destroy(error)
  })
  parser.write(headOf(raw, fields))
  if (body.length <= pieceLength) parser.end(body)
  else Readable.from(piecesOf(body)).pipe(parser)
  for await (const piece of parser as AsyncIterable<Piece>) {
    // what was found before is still handed out
    if (failure) throw failure
    if (piece.type === 'text') {
      mime.text = piece.text
      mime.html = piece.html || undefined
    } else {
      const chunks: Buffer[] = []
      open = piece.content
      for await (const chunk of open) chunks.push(chunk as Buffer)
      piece.release?.()
      mime.files.push(Object.assign(piece, { content: Buffer.concat(chunks) }))
    }
  }
  mime.subject = parser.subject
  mime.beside = mime.text !== undefined && mime.html !== undefined && !areAlternatives(bodies)
  return mime
}

/** Text with its encoded words decoded (RFC 2047). */
export function decodeWords(text: string): string {
  if (!text.includes('=?')) return text
  // The library decodes words in display names only, so the text travels as one.
  const quoted = text.replace(/[\\"]/g, String.raw`\$&`).replace(/[\r\n]+/g, ' ')
  return parseAddressHeader(`"${quoted}" <words@example.test>`, { decodePunycode: false }).value[0]?.name ?? text
}

/** What decides how a body is read (RFC 2045, RFC 2183), and the Subject, which is decoded. */
const needed = /^(?:content-.*|mime-version|subject)$/

function headOf(raw: Buffer, fields: readonly HeaderField[], unfold = withoutLineEnds): Buffer {
  const firsts = new Map<string, string>()
  for (const { name, start, end } of fields) {
    if (!needed.test(name) || firsts.has(name)) continue
    const text = raw.toString('latin1', start, end)
    firsts.set(name, `${name}:${unfold(text.slice(text.indexOf(':') + 1))}\r\n`)
  }
  return Buffer.from(`${[...firsts.values()].join('')}\r\n`, 'latin1')
}

// Of a row of lone CRs the library takes the square.
const withoutLineEnds = (text: string): string => text.replaceAll(/\r?\n/g, '').replaceAll('\r', ' ')

/** As the library unfolds: names of files are folded with tabs that belong to the fold. */
const withOneBlank = (text: string): string => text.replaceAll(/[\r\n]+[ \t]*/g, ' ')

/** In pieces: the library makes an object of every line it is given, before it looks at the first. */
function* piecesOf(raw: Buffer): Generator<Buffer> {
  for (let at = 0; at < raw.length; at += pieceLength) yield raw.subarray(at, at + pieceLength)
}

const pieceLength = 64 * 1024

const maxLines = 1_200_000

type Piece = AttachmentStream | { type: 'text'; text?: string; html?: string | false }

interface Node {
  root: boolean
  parentNode: Node | false
  contentType: string | false
  disposition: string | false
  filename: string | false
  encoding: string | false
  getDecoder(): Transform
}

/* eslint-disable no-underscore-dangle -- the library's names */
/** A part whose header comes, line by line. */
interface Part {
  parseHeaders(): void
  _headersLines: Buffer[]
  _headerlen: number
}

// The library takes the square of a field's lines until it finds a colon in them, and reads the addresses of every part, which nobody asks for.
function withPlainHeaders(parser: MailParser): void {
  const { splitter } = parser as unknown as { splitter: { node: Part; newNode(parent?: Part): void } }
  const begin = splitter.newNode.bind(splitter)
  splitter.newNode = (parent) => {
    begin(parent)
    const part = splitter.node
    const parse = part.parseHeaders.bind(part)
    part.parseHeaders = () => {
      const raw = Buffer.concat(part._headersLines, part._headerlen)
      const head = headOf(raw, headersOf(raw), withOneBlank)
      part._headersLines = [head]
      part._headerlen = head.length
      parse()
    }
  }
}
/* eslint-enable no-underscore-dangle */

// The library glues every inline text to the body, and keeps to itself which part was which: it is told, and asked, where it makes its tree.
function bodiesOf(parser: MailParser): Node[] {
  const bodies: Node[] = []
  const inside = parser as unknown as { createNode(node: Node): unknown }
  const create = inside.createNode.bind(parser)
  inside.createNode = (node) => {
    const { disposition } = node
    if (node.encoding === 'quoted-printable') node.getDecoder = quotedPrintableDecoder
    if (isFile(node)) node.disposition = 'attachment'
    else if (disposition === false || disposition === 'inline') bodies.push(node)
    const created = create(node)
    node.disposition = disposition
    return created
  }
  return bodies
}

// A text that is shown inline, but under a name of its own.
function isFile({ root, parentNode, contentType, disposition, filename }: Node): boolean {
  if (disposition !== 'inline' || !filename || root) return false
  if (contentType !== 'text/plain' && contentType !== 'text/html') return false
  return parentNode === false || parentNode.contentType !== 'multipart/alternative'
}

function areAlternatives(bodies: Node[]): boolean {
  const ofText = new Set(bodies.flatMap((body) => (body.contentType === 'text/plain' ? alternativesAbove(body) : [])))
  return bodies.some((body) => body.contentType === 'text/html' && alternativesAbove(body).some((above) => ofText.has(above)))
}

function alternativesAbove(node: Node): Node[] {
  const found: Node[] = []
  for (let above = node.parentNode; above; above = above.parentNode)
    if (above.contentType === 'multipart/alternative') found.push(above)
  return found
}
