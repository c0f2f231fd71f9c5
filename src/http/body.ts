import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpMethodEnum, koaBody } from 'koa-body'
import { Chunks, tooManyChunks } from '../core/octets.ts'
import { Fault } from '../core/fault.ts'
import { JsonScan } from '../core/json-scan.ts'
import type { BodyShare } from './body-memory.ts'
import type { Upload } from './route.ts'

type Reader = ReturnType<typeof koaBody>
type Context = Parameters<Reader>[0]

const readers = new Map<string, Reader>()

/** The octets of a call, and what was seen of them as JSON while they came; nothing of `raw` ones, and where there are none. */
export interface Body {
  bytes: Buffer
  scan: JsonScan | undefined
}

const empty: Body = { bytes: Buffer.alloc(0), scan: undefined }

/**
 * The octets a call carries, scanned as JSON unless it is `raw`; empty when it carries nothing. Throws Fault 400 `unsupported_media_type`,
 * `malformed_json`, or, as soon as it is known and without reading on, `body_too_large` (over `limit` bytes), `too_many_chunks`, `too_deep`,
 * `too_many_tokens`, `too_long_key`, `too_much_padding` or `too_many_escapes`; 429 `too_much_at_once`. Encodings other than identity must be refused before.
 */
async function readBody(context: Context, limit: number, share: BodyShare, raw = false): Promise<Body> {
  const { headers } = context.req
  const announced = headers['content-length']
  if (headers['transfer-encoding'] === undefined && (announced === undefined || Number(announced) === 0)) {
    return empty
  }
  if (!raw && !isJson(headers['content-type'])) {
    throw new Fault('invalid_request', 'A body must be sent as Content-Type: application/json, in UTF-8.', {
      code: 'unsupported_media_type',
      param: 'Content-Type',
    })
  }
  if (announced !== undefined && Number(announced) > limit) throw tooLarge(limit)
  const body = await collected(context, limit, share, raw)
  await share.begin()
  return body
}

/** The whole body; JSON is looked at piece by piece as it arrives. */
async function collected(context: Context, limit: number, share: BodyShare, raw: boolean): Promise<Body> {
  const { req: request } = context
  const chunks = new Chunks()
  const scan = raw ? undefined : new JsonScan('The body')
  const look = (piece: Buffer): void => {
    try {
      if (!chunks.add(piece)) throw inPieces()
      share.take(piece.length)
      scan?.add(piece)
    } catch (error) {
      request.off('data', look)
      if (error instanceof Fault && error.code === 'too_many_chunks') endWithAnswer(context)
      // the reader's listeners take it for the end of the body, and let go of what they have
      request.emit('error', error)
    }
  }
  // the reader listens at once: whoever listens before it would set the stream flowing
  const reading = readerFor(limit, raw)(context, nothing)
  request.on('data', look)
  context.res.once('close', () => share.giveBack())
  try {
    await reading
  } catch (error) {
    request.resume()
    throw error
  } finally {
    request.off('data', look)
  }
  const bytes = (context.request as { body?: unknown }).body
  if (!Buffer.isBuffer(bytes)) throw new Error('The body was not read')
  return { bytes, scan }
}

/** The two ways to take the body of a call; it is on its way until one of them is used. */
export function bodyOf(
  context: Context,
  share: BodyShare,
  raw?: boolean,
): { read(limit: number): Promise<Body>; receive(): Upload } {
  return { read: (limit) => readBody(context, limit, share, raw), receive: () => received(context) }
}

/** The octets as they come; nobody has read any of them yet. */
function received({ req: request }: Context): Upload {
  request.emit('upload')
  const announced = request.headers['content-length']
  return {
    // whoever breaks off has an answer to give on the same connection
    octets: request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    length: announced === undefined ? undefined : Number(announced),
  }
}

/** To a call whose rest is too dear to be read, even to throw it away: it is not, and the connection ends with the answer. */
function endWithAnswer({ req: { socket }, res }: Context): void {
  socket.pause()
  res.setHeader('Connection', 'close')
  res.once('finish', () => socket.destroy())
}

/**
 * To a call that was refused: a client that is still sending hears why, and is not listened to for longer than a second, or for more chunks
 * than a body may have.
 */
export function hangUpUnread(request: IncomingMessage, response: ServerResponse): void {
  const hangUp = (): void => void (request.complete || request.socket.destroy())
  const chunks = new Chunks()
  // before the answer has gone: from then on Node.js would drop the rest by itself, however many chunks it comes in
  response.once('prefinish', () => {
    if (request.complete) return
    request.on('data', (piece: Buffer) => void (chunks.add(piece) || request.socket.destroy()))
    request.read(0)
  })
  response.once('finish', () => {
    if (!request.complete) setTimeout(hangUp, 1000).unref()
  })
}

// each white space has one place that it can be in: tried in several, a long row of it would take time in the square of its length
const media = /^application\/json[ \t]*(?:;[ \t]*(?:charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*(?:;[ \t]*)?)?)?$/i

/** The only parameter JSON may come with is a charset, and it can only be UTF-8 (RFC 8259 8.1). */
function isJson(type: string | undefined): boolean {
  return type !== undefined && media.test(type)
}

/**
 * koa-body reads and counts the octets; what they mean is decided in `json.ts`. Its own JSON reading lets a key come twice
 * and 1e400 be Infinity, so it is told the type is text, and with no character set, which keeps the octets as they came.
 */
function readerFor(limit: number, raw: boolean): Reader {
  const name = `${limit} ${raw}`
  const known = readers.get(name)
  if (known) return known
  const reader = koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: raw ? ['*/*'] : ['application/json'],
    textLimit: limit,
    encoding: '',
    parsedMethods: [HttpMethodEnum.GET, HttpMethodEnum.HEAD, HttpMethodEnum.POST, HttpMethodEnum.PATCH, HttpMethodEnum.DELETE],
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
  return new Fault('invalid_request', `The body is larger than ${limit} bytes, the most this call takes.`, {
    code: 'body_too_large',
  })
}

function inPieces(): Fault {
  return new Fault('invalid_request', `The body comes in ${tooManyChunks}. Send it in larger ones, or with Content-Length.`, {
    code: 'too_many_chunks',
  })
}

async function nothing(): Promise<void> {}
