import { request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { parseForeign } from '../core/json.ts'

/** A CA's response: JSON is parsed, anything else is text. */
export interface CaAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  data: unknown
}

/** Why there is no certificate: a sentence that names its source. */
export class AuthorityError extends Error {
  /** Milliseconds until the CA accepts another attempt; 0 when it did not say. */
  readonly pause: number

  constructor(message: string, pause: number = 0, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'AuthorityError'
    this.pause = pause
  }
}

interface Line {
  /** PEM; the only trusted roots, if given. */
  ca: string | undefined
  /** Required by RFC 8555 6.1. */
  agent: string
  signal: AbortSignal
}

/** The largest response in bytes: a chain has a few KiB. */
const largest = 512 * 1024
/** The idle timeout in milliseconds. */
const timeout = 20_000

/** Sends one request to a CA (RFC 8555 6.1: HTTPS, no redirects). Throws AuthorityError when there is no response. */
export function speak(url: string, method: string, data: unknown, { ca, agent, signal }: Line): Promise<CaAnswer> {
  const host = URL.parse(url)?.host ?? url
  const body = data === undefined ? undefined : JSON.stringify(data)
  const headers = {
    'User-Agent': agent,
    ...(body === undefined ? {} : { 'Content-Type': 'application/jose+json', 'Content-Length': Buffer.byteLength(body) }),
  }
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void =>
      reject(
        error instanceof AuthorityError ? error : new AuthorityError(`${host} could not be reached: ${error.message}`, 0, error),
      )
    if (URL.parse(url)?.protocol !== 'https:') return fail(new Error('it is not an https URL'))
    const call = request(url, {
      method: method.toUpperCase(),
      headers,
      agent: false,
      signal,
      ...(ca === undefined ? {} : { ca }),
    })
    call.setTimeout(timeout, () => call.destroy(new Error(`no response within ${timeout / 1000} s`)))
    call.on('error', fail)
    call.on('response', (answer) => void read(answer, host).then(resolve, fail))
    call.end(body)
  })
}

async function read(answer: IncomingMessage, host: string): Promise<CaAnswer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > largest) throw new AuthorityError(`the response of ${host} is larger than ${largest} bytes`)
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  const isJson = /\bjson\b/.test(answer.headers['content-type'] ?? '')
  return { status: answer.statusCode ?? 0, headers: answer.headers, data: isJson ? parsed(text, host) : text }
}

function parsed(text: string, host: string): unknown {
  try {
    return parseForeign(text, 'The answer')
  } catch {
    throw new AuthorityError(`the response of ${host} is not JSON`)
  }
}
