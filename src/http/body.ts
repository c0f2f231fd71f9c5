import { HttpMethodEnum, koaBody } from 'koa-body'
import { Fault } from '../core/fault.ts'
import { Chunks } from './chunks.ts'
import { parseJson } from './json.ts'
import type { Upload } from './route.ts'

type Reader = ReturnType<typeof koaBody>
type Context = Parameters<Reader>[0]
type Body = { bytes: Buffer; value: Record<string, unknown> }

const readers = new Map<string, Reader>()

/**
 * The JSON object a call carries; `{}` when it carries nothing, and when it is `raw`: then only the octets count. Throws Fault 400 `unsupported_media_type`,
 * `body_too_large` (over `limit` bytes), `too_many_chunks` or `malformed_json`. Encodings other than identity must be refused before.
 */
export async function readBody(context: Context, limit: number, raw = false): Promise<Body> {
  const headers = context.req.headers
  const announced = headers['content-length']
  if (headers['transfer-encoding'] === undefined && (announced === undefined || Number(announced) === 0)) {
    return { bytes: Buffer.alloc(0), value: {} }
  }
  if (!raw && !isJson(headers['content-type'])) {
    throw new Fault('invalid_request', 'A body must be sent as Content-Type: application/json, in UTF-8.', {
      code: 'unsupported_media_type',
      param: 'Content-Type',
    })
  }
  await collected(context, limit, raw)
  const bytes = (context.request as { body?: unknown }).body
  if (!Buffer.isBuffer(bytes)) throw new Error('The body was not read')
  return { bytes, value: raw ? {} : parseJson(bytes) }
}

/** Has the reader collect the body, and looks at each chunk as it arrives. */
async function collected(context: Context, limit: number, raw: boolean): Promise<void> {
  const { req: request } = context
  const chunks = new Chunks()
  const look = (chunk: Buffer): void => {
    try {
      chunks.add(chunk)
    } catch (error) {
      request.off('data', look)
      // the reader's listeners take it for the end of the body, and let go of what they have
      request.emit('error', error)
      endConnection(context)
    }
  }
  // the reader listens at once: whoever listens before it would set the stream flowing
  const reading = readerFor(limit, raw)(context, nothing)
  request.on('data', look)
  try {
    await reading
  } catch (error) {
    // what is still to come is read and forgotten, so that the connection goes on; not so what is dear to read
    if (context.res.shouldKeepAlive) request.resume()
    throw error
  } finally {
    request.off('data', look)
  }
}

/** The answer is the last on its connection, and what is still sent there is not looked at. */
function endConnection({ req: request, res: response }: Context): void {
  response.shouldKeepAlive = false
  response.once('finish', () => setTimeout(() => request.socket.destroy(), 1000).unref())
}

/** The two ways to take the body of a call; it is on its way until one of them is used. */
export function bodyOf(context: Context, raw?: boolean): { read(limit: number): Promise<Body>; receive(): Upload } {
  return { read: (limit) => readBody(context, limit, raw), receive: () => received(context) }
}

/** Who sends more than we want to know hears why, and is not listened to any longer. */
function received({ req: request, res: response }: Context): Upload {
  const { socket } = request
  request.emit('upload')
  response.once('finish', () => {
    const hangUp = (): void => void (request.complete || socket.destroy())
    if (!request.complete) setTimeout(hangUp, 1000).unref()
  })
  const announced = request.headers['content-length']
  return {
    // whoever breaks off has an answer to give on the same connection
    octets: request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    length: announced === undefined ? undefined : Number(announced),
  }
}

/** The only parameter JSON may come with is a charset, and it can only be UTF-8 (RFC 8259 8.1). */
function isJson(type: string | undefined): boolean {
  return type !== undefined && /^application\/json[ \t]*(;[ \t]*charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*)?;?[ \t]*$/i.test(type)
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
  if (error.status === 413) {
    return new Fault('invalid_request', `The body is larger than ${limit} bytes, the most this call takes.`, {
      code: 'body_too_large',
    })
  }
  if (error.status === 400) {
    return new Fault('invalid_request', 'The body ended before it was complete.', { code: 'malformed_request' })
  }
  return error
}

async function nothing(): Promise<void> {}
