import { Readable } from 'node:stream'
import { ByteBuffer } from '../core/byte-buffer.ts'
import type { OutsideDocument } from './exchange.ts'
import { failureReason, undici, Unreachable } from './outside.ts'

/** Error codes of failures before anything was sent. */
const notSent =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_|ERR_TLS|SELF_SIGNED|DEPTH_ZERO|UNABLE_)/

interface ConfiguredRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  headers: string[] | Record<string, string>
  body: Uint8Array | Iterable<Uint8Array> | null
  signal: AbortSignal
  limit: number
  alone?: boolean
}

/**
 * Calls a server that the operator configured, without address checks. Throws Unreachable when the request was certainly not sent, any other
 * error when it may have been, also for a response above `limit` bytes. `alone` uses a new connection: a kept one may be closed while it is
 * reused, and then it is unknown whether the server received the request.
 */
export async function callConfigured(
  url: URL,
  input: ConfiguredRequest,
): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; text: string }> {
  const { body, ...answer } = await fetchConfigured(url, input)
  return { ...answer, text: body.toString('utf8') }
}

/** The same for a response that is no text. */
export async function fetchConfigured(url: URL, input: ConfiguredRequest): Promise<OutsideDocument> {
  const { limit, alone = false, body, ...asked } = input
  // pieces of an iterable are sent one after another
  const sent = body === null || body instanceof Uint8Array ? body : Readable.from(body, { objectMode: false })
  const answer = await undici()
    .request(url, { ...asked, body: sent, reset: alone })
    .catch((error: unknown) => {
      throw notSent.test((error as NodeJS.ErrnoException).code ?? '') ? new Unreachable(failureReason(error), error) : error
    })
  return { status: answer.statusCode, headers: answer.headers, body: await readBody(answer.body, limit) }
}

async function readBody(body: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const bytes = new ByteBuffer()
  for await (const chunk of body) {
    if (bytes.size + chunk.length > limit) throw new Error(`the response is larger than ${limit} bytes`)
    bytes.add(chunk)
  }
  return bytes.take()!
}
