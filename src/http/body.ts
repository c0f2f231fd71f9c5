import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import type { koaBody } from 'koa-body'
import { ByteBuffer, Chunks, tooManyChunksReason } from '../core/byte-buffer.ts'
import { Fault } from '../core/fault.ts'
import { JsonScan } from '../core/json.ts'
import { release, relieve } from '../core/memory.ts'
import type { WorkLimits, WorkShare } from '../net/work-limiter.ts'
import type { Upload } from './route.ts'
import type { CallAbort } from './server/call-abort.ts'
import { discardBody } from './server/give-up.ts'

type Reader = ReturnType<typeof koaBody>
type Context = Parameters<Reader>[0]

/**
 * Request bodies in memory, from their first byte until the response has closed and the handler has settled: one of the largest (40 MiB) beside 24 MiB
 * of others, such as everybody without a key. With messages that arrive by SMTP, and what is made of both, more took the process beyond 600 MiB. A
 * slow client takes only what it has sent, and nobody can take the bytes for small bodies from others. A large body is parsed and handled in turn, as
 * that takes several times as much memory: of the largest one at a time.
 */
export const bodyMemory: WorkLimits = {
  memory: {
    all: 64 * 1024 * 1024,
    one: 48 * 1024 * 1024,
    own: 1024 * 1024,
    pooled: true,
    message: 'Too many large bodies are being read at once. Retry when other requests have finished.',
  },
  concurrent: { all: 3, one: 1, bytes: 32 * 1024 * 1024 },
  large: 1024 * 1024,
  longest: 2000,
}

/** Small chunks of a body. */
const maxChunks = 2048

/** Bytes from which a body is long. */
const long = 256 * 1024

const require = createRequire(import.meta.url)

const readers = new Map<string, Reader>()

/** The body of a call and its scan as JSON; no scan for a `raw` or empty body, or one that is `parsed`. */
export interface Body {
  bytes: Buffer
  scan: JsonScan | undefined
  parsed?: unknown
}

interface BodyOptions {
  /** The share of the body, which the caller ends and releases. */
  shareOf: () => WorkShare
  abort: CallAbort
  /** True if the body is not scanned as JSON. */
  raw?: boolean | undefined
}

const empty: Body = { bytes: Buffer.alloc(0), scan: undefined }

/**
 * Reads the body of a call and scans it as JSON unless it is `raw`. Throws Fault 400 `unsupported_media_type`,
 * `malformed_json`, or, as soon as it is known, without reading on, `body_too_large` (over `limit` bytes), `too_many_chunks`, `too_deep`,
 * `too_many_tokens`, `too_long_key`, `too_much_padding` or `too_many_escapes`; 429 `too_much_at_once`. Rejects when the call is aborted while a large
 * body waits for its turn. Encodings other than identity must be refused before.
 */
function readBody(context: Context, limit: number, { shareOf, abort, raw = false }: BodyOptions): Body | Promise<Body> {
  const { headers } = context.req
  const contentLength = headers['content-length']
  if (headers['transfer-encoding'] === undefined && (contentLength === undefined || Number(contentLength) === 0)) {
    return empty
  }
  if (!raw && !isJson(headers['content-type'])) {
    throw new Fault('invalid_request', 'A body must be sent as Content-Type: application/json, in UTF-8.', {
      code: 'unsupported_media_type',
      param: 'Content-Type',
    })
  }
  if (contentLength !== undefined && Number(contentLength) > limit) throw tooLarge(limit)
  const share = shareOf()
  return collected(context, limit, share, raw).then(async (body) => {
    await share.begin(abort.signal)
    return body
  })
}

/** The complete body; JSON is scanned chunk by chunk as it arrives. */
async function collected(context: Context, limit: number, share: WorkShare, raw: boolean): Promise<Body> {
  const { req: request } = context
  const chunks = new Chunks(maxChunks)
  const scan = raw ? undefined : new JsonScan('The body')
  const isShort = Number(request.headers['content-length']) < long
  const scanChunk = (chunk: Buffer): void => {
    try {
      if (!chunks.add(chunk)) throw tooManyChunks()
      share.reserve(chunk.length)
      scan?.add(chunk)
      if (!isShort) release(chunk)
    } catch (error) {
      request.off('data', scanChunk)
      if (error instanceof Fault && error.code === 'too_many_chunks') endWithAnswer(context)
      // the listeners of the reader treat it as the end of the body and drop their buffers
      request.emit('error', error)
    }
  }
  const copied: Buffer[] = []
  const source = isShort ? request : inOnePiece(request, limit)
  // the reader must listen first: an earlier listener would start the stream
  const given =
    isShort && !raw
      ? context
      : (Object.create(context, {
          ...(isShort ? {} : { req: { value: source } }),
          // also without a Content-Type
          ...(raw ? { is: { value: () => '*/*' } } : {}),
        }) as Context)
  const reading = readerFor(limit, raw)(given, nothing)
  source.on('data', (part: Buffer) => void copied.push(part))
  request.on('data', scanChunk)
  try {
    await reading
  } catch (error) {
    if (!isShort) source.destroy()
    request.on('data', release).resume()
    throw error
  } finally {
    request.off('data', scanChunk)
  }
  const bytes = (context.request as { body?: unknown }).body
  if (!Buffer.isBuffer(bytes)) throw new Error('The body was not read')
  // by the reader
  for (const chunk of copied) release(chunk)
  return { bytes, scan }
}

/**
 * A long body as one buffer at its end, in memory that the system has back when it is freed. Kept as they come, the chunks of a body of 40 MiB leave the
 * heap of the process that much larger for good.
 */
function inOnePiece(request: IncomingMessage, limit: number): Readable {
  // what others have dropped would else be kept beside it
  relieve()
  const bytes = new ByteBuffer(limit)
  const source = new Readable({ read: () => undefined })
  // it may come after the reader has ended
  source.on('error', () => undefined)
  // of a refused body the client may go on to send the rest
  source.once('close', () => {
    bytes.drop()
    relieve()
  })
  request.on('data', (chunk: Buffer) => {
    if (source.destroyed) return
    bytes.add(chunk)
    if (bytes.over) source.destroy(tooLarge(limit))
  })
  request.on('end', () => {
    source.push(bytes.take())
    source.push(null)
  })
  request.on('aborted', () => source.emit('aborted'))
  request.on('error', (error) => source.destroy(error))
  return Object.assign(source, { headers: request.headers })
}

/** The two ways to take the body of a call. It is not read until one of them is used. */
export function bodyOf(context: Context, options: BodyOptions): { read(limit: number): Body | Promise<Body>; receive(): Upload } {
  return { read: (limit) => readBody(context, limit, options), receive: () => received(context) }
}

/** The body as a stream, not read so far. */
function received({ req: request }: Context): Upload {
  request.emit('upload')
  const contentLength = request.headers['content-length']
  return {
    // after an early exit the response is still sent on the same connection
    octets: request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    length: contentLength === undefined ? undefined : Number(contentLength),
  }
}

/** Stops reading and closes the connection after the response, for a body that is too expensive even to discard. */
function endWithAnswer({ req, res }: Context): void {
  const { socket } = req
  discardBody(req)
  socket.pause()
  res.setHeader('Connection', 'close')
  res.once('finish', () => socket.destroy())
}

// white space can match in one position only: with several, a long run of it would take quadratic time
const media = /^application\/json[ \t]*(?:;[ \t]*(?:charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*(?:;[ \t]*)?)?)?$/i

/** The only parameter JSON may come with is a charset, and it can only be UTF-8 (RFC 8259 8.1). */
function isJson(type: string | undefined): boolean {
  return type !== undefined && media.test(type)
}

/**
 * koa-body reads and counts the bytes; `json.ts` parses them. The JSON parser of koa-body accepts repeated keys and 1e400 as Infinity, so it is
 * configured to read text without a character set, which keeps the bytes unchanged.
 */
function readerFor(limit: number, raw: boolean): Reader {
  const name = `${limit} ${raw}`
  const known = readers.get(name)
  if (known) return known
  // loaded with the first body
  const library = require('koa-body') as typeof import('koa-body')
  const { GET, HEAD, POST, PATCH, DELETE } = library.HttpMethodEnum
  const reader = library.koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: raw ? ['*/*'] : ['application/json'],
    textLimit: limit,
    encoding: '',
    parsedMethods: [GET, HEAD, POST, PATCH, DELETE],
    onError: (error) => {
      throw asFault(error, limit)
    },
  })
  readers.set(name, reader)
  return reader
}

function asFault(error: Error & { status?: number; type?: string }, limit: number): Error {
  if (error.status === 413) return tooLarge(limit)
  if (error.status === 400) {
    return new Fault('invalid_request', 'The body ended before it was complete.', { code: 'malformed_request' })
  }
  return error
}

function tooLarge(limit: number): Fault {
  return new Fault('invalid_request', `The body is larger than ${limit} bytes, the limit of this call.`, {
    code: 'body_too_large',
  })
}

function tooManyChunks(): Fault {
  return new Fault(
    'invalid_request',
    `The body consists of ${tooManyChunksReason(maxChunks)}. Send larger chunks, or use Content-Length.`,
    {
      code: 'too_many_chunks',
    },
  )
}

async function nothing(): Promise<void> {}
