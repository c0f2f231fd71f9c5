import { Readable, type Transform } from 'node:stream'
import { type AttachmentStream, MailParser, parseAddressHeader } from 'mailparser'
import { headEnd, type HeaderField, headerLimit, headersOf } from '../headers.ts'
import { unflowed } from './flowed.ts'
import type { Mime } from './model.ts'
import { quotedPrintableDecoder } from './quoted-printable.ts'
import { guessedUtf8, isUndeclared, TextLimit } from './body-text.ts'

/**
 * Parses the MIME structure of a message with mailparser; rejects when that fails. `fields` is its header. The library is given only the first of
 * each field that it needs, so that it cannot interpret other lines as fields. It does not parse addresses.
 */
export async function parseWithLibrary(raw: Buffer, fields: readonly HeaderField[]): Promise<Mime> {
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
  const limit = new TextLimit()
  const bodies = bodiesOf(parser, limit)
  const mime: Mime = { subject: undefined, text: undefined, html: undefined, files: [], areSeparateBodies: false, isCut: false }
  const body = raw.subarray(Math.min(headEnd(raw), raw.length))
  // On an error the library does not end the stream of the current attachment, so it is destroyed here.
  let failure: Error | undefined
  let open: Readable | undefined
  parser.on('error', (error: Error) => {
    failure = error
    open?.destroy(error)
  })
  parser.write(headOf(raw, fields))
  if (body.length <= chunkLength) parser.end(body)
  else Readable.from(chunksOf(body)).pipe(parser)
  for await (const item of parser as AsyncIterable<ParserItem>) {
    // the parser still emits items that it found before the failure
    if (failure) throw failure
    if (item.type === 'text') {
      mime.text = item.text
      mime.html = item.html || undefined
    } else {
      const chunks: Buffer[] = []
      open = item.content
      for await (const chunk of open) chunks.push(chunk as Buffer)
      item.release?.()
      const content = Buffer.concat(chunks)
      const { contentType, filename, contentDisposition, cid, related = false, checksum = '' } = item
      mime.files.push({
        contentType: contentType || '',
        filename,
        charset: charsetOf(item),
        contentDisposition,
        cid,
        related,
        size: content.length,
        checksum,
        content,
      })
    }
  }
  mime.subject = parser.subject
  mime.isCut = limit.isExceeded
  mime.areSeparateBodies = mime.text !== undefined && mime.html !== undefined && !areAlternatives(bodies)
  return mime
}

function charsetOf({ headers }: AttachmentStream): string | undefined {
  const type = headers?.get('content-type')
  return typeof type === 'object' && 'params' in type ? (type.params as Record<string, string>)['charset'] : undefined
}

/** Text with its encoded words decoded (RFC 2047). */
export function decodeWords(text: string): string {
  if (!text.includes('=?')) return text
  // The library decodes words only in display names, so the text is passed as one.
  const quoted = text.replace(/[\\"]/g, String.raw`\$&`).replace(/[\r\n]+/g, ' ')
  return parseAddressHeader(`"${quoted}" <words@example.test>`, { decodePunycode: false }).value[0]?.name ?? text
}

/** The fields that determine how a body is decoded (RFC 2045, RFC 2183), and the Subject, which the library decodes. */
const neededFields = /^(?:content-.*|mime-version|subject)$/

function headOf(raw: Buffer, fields: readonly HeaderField[], unfold = withoutLineEnds): Buffer {
  const firsts = new Map<string, string>()
  for (const { name, start, end } of fields) {
    if (!neededFields.test(name) || firsts.has(name)) continue
    const text = raw.toString('latin1', start, end)
    firsts.set(name, `${name}:${unfold(text.slice(text.indexOf(':') + 1))}\r\n`)
  }
  return Buffer.from(`${[...firsts.values()].join('')}\r\n`, 'latin1')
}

// The library takes quadratic time for a run of bare CRs.
const withoutLineEnds = (text: string): string => text.replaceAll(/\r?\n/g, '').replaceAll('\r', ' ')

/** Unfolds like the library: file names are folded with tabs that are part of the fold. */
const withSingleSpace = (text: string): string => text.replaceAll(/[\r\n]+[ \t]*/g, ' ')

/** In chunks, as the library creates an object for every line of a chunk before it processes the first. */
function* chunksOf(raw: Buffer): Generator<Buffer> {
  for (let at = 0; at < raw.length; at += chunkLength) yield raw.subarray(at, at + chunkLength)
}

const chunkLength = 64 * 1024

type ParserItem = AttachmentStream | { type: 'text'; text?: string; html?: string | false }

interface Node {
  root: boolean
  parentNode: Node | false
  contentType: string | false
  disposition: string | false
  filename: string | false
  encoding: string | false
  charset: string | false
  flowed: boolean
  delSp: boolean
  getDecoder(): Transform
}

/* eslint-disable no-underscore-dangle -- the library's names */
/** The library's object for a part whose header is being read. */
interface Part {
  parseHeaders(): void
  _headersLines: Buffer[]
  _headerlen: number
}

// The library takes quadratic time for the lines of a field without a colon, and parses unused addresses of every part.
function withPlainHeaders(parser: MailParser): void {
  const { splitter } = parser as unknown as { splitter: { node: Part; newNode(parent?: Part): void } }
  const begin = splitter.newNode.bind(splitter)
  splitter.newNode = (parent) => {
    begin(parent)
    const part = splitter.node
    const parse = part.parseHeaders.bind(part)
    part.parseHeaders = () => {
      const raw = Buffer.concat(part._headersLines, part._headerlen)
      const head = headOf(raw, headersOf(raw), withSingleSpace)
      part._headersLines = [head]
      part._headerlen = head.length
      parse()
    }
  }
}
/* eslint-enable no-underscore-dangle */

// The library joins all inline texts into the body and does not separate the parts, so its tree nodes are intercepted on creation.
function bodiesOf(parser: MailParser, limit: TextLimit): Node[] {
  const bodies: Node[] = []
  const internals = parser as unknown as { createNode(node: Node): unknown }
  const create = internals.createNode.bind(parser)
  internals.createNode = (node) => {
    const { disposition } = node
    if (node.encoding === 'quoted-printable') node.getDecoder = quotedPrintableDecoder
    if (isFile(node)) node.disposition = 'attachment'
    else if (disposition === false || disposition === 'inline') {
      bodies.push(node)
      const isText = node.contentType === 'text/plain' || node.contentType === 'text/html'
      if (node.flowed || (isText && isUndeclared(node.charset))) readWhole(node, limit)
      if (isText) limitText(node, limit)
    }
    const created = create(node)
    node.disposition = disposition
    return created
  }
  return bodies
}

/** Limits what the decoder of a body gives: the library keeps all of it, several times. */
function limitText(node: Node, limit: TextLimit): void {
  const getDecoder = node.getDecoder.bind(node)
  node.getDecoder = () => {
    const decoder = getDecoder()
    const push = decoder.push.bind(decoder)
    decoder.push = (chunk: Buffer | null) => {
      const kept = chunk === null ? null : limit.take(chunk)
      return kept?.length === 0 || push(kept)
    }
    return decoder
  }
}

/**
 * Reads a text here that the library reads otherwise: it joins lines that flow whatever their quote marks, so that an answer would become part of
 * the quote above it, and takes bytes without a charset for UTF-8.
 */
function readWhole(node: Node, limit: TextLimit): void {
  const getDecoder = node.getDecoder.bind(node)
  const { flowed, delSp, charset } = node
  node.flowed = false
  node.getDecoder = () => {
    const decoder = getDecoder()
    const push = decoder.push.bind(decoder)
    const chunks: Buffer[] = []
    decoder.push = (chunk: Buffer | null) => {
      if (chunk !== null) chunks.push(chunk)
      else if (chunks.length > 0) {
        const octets = Buffer.concat(chunks)
        const text = isUndeclared(charset) ? guessedUtf8(octets, limit.isExceeded) : octets
        push(flowed ? unflowed(text, delSp) : text)
      }
      return chunk === null ? push(null) : true
    }
    return decoder
  }
}

// An inline text part with a file name is an attachment.
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
