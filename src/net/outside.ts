import type { LookupAddress } from 'node:dns'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { callbackify } from 'node:util'
import type { Agent, buildConnector } from 'undici'
import { tooManyChunksReason } from '../core/byte-buffer.ts'
import { Fault } from '../core/fault.ts'
import type { WorkLimits } from './work-limiter.ts'
import { Networks } from './networks.ts'
import { limitResponseBytes, Exchange, type OutsideDocument } from './exchange.ts'
import { isPublic } from './public-addresses.ts'
import type { Resolve } from './resolve.ts'
import { secureStream } from './secure-stream.ts'
import type { TlsOptions } from './tls-worker.ts'

/** The response of an external server. */
export interface OutsideAnswer extends Omit<OutsideDocument, 'body'> {
  /** The first KiB of the body, as UTF-8. */
  body: string
}

export interface OutsideSettings {
  /** Networks that are allowed although they are not public, also over plain http. */
  allow_networks: readonly string[]
  /** True if plain http is allowed for public addresses. */
  allow_http: boolean
  /** The largest response in bytes, including headers and framing; 512 KiB by default. */
  largest?: number
  /** A PEM file with certificate authorities that are trusted in addition to the default ones. */
  ca_file?: string | undefined
  resolve: Resolve
}

/** The parts of a URL that decide whether an address may be connected to. */
type Target = Pick<URL, 'protocol' | 'port' | 'hostname'>

/** Timeout of the whole exchange in milliseconds, and a signal that aborts it. */
interface CallLimits {
  deadline: number
  signal: AbortSignal
}

/** Opens a connection; replaced in tests. */
export type OutsideDial = buildConnector.connector

type DialOptions = Parameters<OutsideDial>[0]

const require = createRequire(import.meta.url)

/** The library, loaded with the first request: it is a fifth of what a command on a stopped box would load. */
export const undici = (): typeof import('undici') => require('undici') as typeof import('undici')

/** A failed request, with the reason as a sentence. */
export class Unreachable extends Error {
  /** True if the response was too large, so that a retry is useless. */
  readonly tooLarge: boolean

  constructor(message: string, cause?: unknown, tooLarge = false) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Unreachable'
    this.tooLarge = tooLarge
  }
}

/** The largest response in bytes unless the settings say otherwise. */
const defaultMaxBytes = 512 * 1024

/** Bytes that are read and kept of the response to a POST. */
const postLimits = { read: 64 * 1024, kept: 1024 }

/**
 * Fetches of attachments by URL, and of pictures of text messages: the URLs of one message count as one. Their bytes count until they are stored:
 * two messages of the largest size of all accounts, and one of each.
 */
export const fetchLimits: WorkLimits = {
  memory: {
    all: 96 * 1024 * 1024,
    one: 48 * 1024 * 1024,
    pooled: true,
    message: 'Too many large files are being fetched or forwarded at once. Retry when other requests have finished.',
  },
  concurrent: { all: 16, one: 4 },
}

/** Timeout for connecting including TLS, in milliseconds. */
const connectTimeout = 10_000

/**
 * HTTP to external servers: only http(s) without credentials, only to public addresses or allowed networks. This is checked for an address
 * literal, for every address of the name, and for the address connected to. Redirects are not followed, content is not decoded, and the
 * response size is limited.
 */
export class Outside {
  readonly #dial: OutsideDial | undefined
  #settings: OutsideSettings
  #allowed: Networks
  /** Created with the first request. */
  #agent: Agent | undefined
  /** Authorities besides the default ones, in PEM. */
  #authorities: string | undefined

  /** Throws when `ca_file` cannot be read. */
  constructor(settings: OutsideSettings, dial?: OutsideDial) {
    this.#dial = dial
    this.#settings = settings
    this.#allowed = new Networks(settings.allow_networks)
    this.#authorities = settings.ca_file === undefined ? undefined : readFileSync(settings.ca_file, 'utf8')
  }

  /** Existing connections are not reused, as the new settings might refuse them. */
  reload(settings: OutsideSettings): void {
    const former = this.#agent
    this.#authorities = settings.ca_file === undefined ? undefined : readFileSync(settings.ca_file, 'utf8')
    this.#settings = settings
    this.#allowed = new Networks(settings.allow_networks)
    this.#agent = undefined
    void former?.close()
  }

  async close(): Promise<void> {
    await this.#agent?.destroy()
  }

  /** Throws Unreachable for a URL that would be refused. A name without an address may get one later; `strict` refuses it too. */
  async check(text: string, strict = false): Promise<void> {
    const url = this.#parseUrl(text)
    const host = hostOf(url)
    if (isIP(host) > 0) return this.#checkAddress(url, host)
    const plain = url.protocol === 'http:' && !this.#settings.allow_http
    const addresses = await this.#settings.resolve(host).catch((error: unknown): string[] => {
      if (!strict && !plain) return []
      throw new Unreachable(`${host} has no address`, error)
    })
    for (const address of addresses) this.#checkAddress(url, address)
  }

  /** Sends a POST request. Throws Unreachable with the reason, also after `deadline` milliseconds. */
  async post(
    text: string,
    { headers, body, ...limits }: CallLimits & { headers: Record<string, string>; body: Uint8Array },
  ): Promise<OutsideAnswer> {
    const answer = await this.#send(text, { method: 'POST', headers, body }, limits, new Exchange(postLimits))
    return { ...answer, body: answer.body.toString('utf8') }
  }

  /**
   * Fetches a whole document within `deadline` milliseconds. Throws Unreachable with the reason, also above `limit` bytes. `take` is called with
   * the number of bytes as they arrive; a Fault that it throws ends the request.
   */
  get(
    text: string,
    {
      limit,
      headers,
      take,
      ...limits
    }: CallLimits & { limit: number; headers?: Record<string, string>; take?: (bytes: number) => void },
  ): Promise<OutsideDocument> {
    const allHeaders = { accept: '*/*', 'accept-encoding': 'identity', ...headers }
    const tooMuch = new Unreachable(`it has more than ${limit} bytes`, undefined, true)
    const tooMany = new Unreachable(`its response consists of ${tooManyChunksReason()}`, undefined, true)
    const exchange = new Exchange({ read: limit, kept: limit, tooMuch, tooMany, onBytes: take })
    return this.#send(text, { method: 'GET', headers: allHeaders }, limits, exchange)
  }

  async #send(
    text: string,
    httpRequest: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: Uint8Array },
    { deadline, signal }: CallLimits,
    exchange: Exchange,
  ): Promise<OutsideDocument> {
    const url = this.#parseUrl(text)
    if (isIP(hostOf(url)) > 0) this.#checkAddress(url, hostOf(url))
    // before the time begins, as the first one loads the library
    const agent = (this.#agent ??= this.#createAgent())
    const onTimeout = (): void => exchange.cut(new Unreachable(`no complete response within ${deadline / 1000} s`))
    const cut = (): void => exchange.cut(new Unreachable('it was aborted'))
    const timer = setTimeout(onTimeout, deadline)
    signal.addEventListener('abort', cut)
    try {
      const path = url.pathname + url.search
      if (signal.aborted) cut()
      else agent.dispatch({ origin: url.origin, path, ...httpRequest }, exchange)
      return await exchange.answer
    } catch (error) {
      throw error instanceof Unreachable || error instanceof Fault ? error : new Unreachable(failureReason(error), error)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
    }
  }

  #parseUrl(text: string): URL {
    const url = URL.parse(text)
    if (!url) throw new Unreachable('it is not a URL')
    if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Unreachable('it must be an https URL')
    // URL parsers silently correct these, so that the displayed URL would differ from the used one
    if (/[\s\p{Cc}\\]/u.test(text)) throw new Unreachable('it must not contain spaces, control characters or backslashes')
    if (!/^https?:\/\//i.test(text)) throw new Unreachable('it must begin with https://')
    if (/^[^/]+\/\/[^/?#]*@/.test(text)) throw new Unreachable('it must not contain credentials')
    return url
  }

  #checkAddress(url: Target, address: string): void {
    if (this.#allowed.has(address.replace(/%.*/s, ''))) return
    if (!isPublic(address)) {
      // what a name resolves to is not for the caller: it may be a private DNS that answers
      const host = hostOf(url)
      throw new Unreachable(`${isIP(host) > 0 ? host : `the address of ${host}`} is not a public address`)
    }
    if (url.protocol === 'http:' && !this.#settings.allow_http) throw new Unreachable('it must be https')
    const port = url.port === '' ? 443 : Number(url.port)
    // other services listen there, which might interpret a request as commands
    if (port < 1024 && port !== 80 && port !== 443) throw new Unreachable(`port ${port} is not for HTTP`)
  }

  #createAgent(): Agent {
    const open = callbackify((options: DialOptions) => this.#connect(options))
    const connect: OutsideDial = (options, callback) =>
      open(options, (error: Error | null, socket) => (error ? callback(error, null) : callback(null, socket)))
    return new (undici().Agent)({
      connect,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 10_000,
      keepAliveMaxTimeout: 30_000,
    })
  }

  async #connect(options: DialOptions): Promise<Socket> {
    const url = { protocol: options.protocol, port: options.port, hostname: options.hostname }
    const addresses = await this.#addressesOf(url)
    const socket = this.#dial
      ? this.#checkSocket(url, await opened(this.#dial, options))
      : await this.#open(url, options, fixedLookup(addresses))
    limitResponseBytes(socket, this.#settings.largest ?? defaultMaxBytes, () => new Unreachable('its response is too large'))
    return socket
  }

  async #open(url: Target, options: DialOptions, lookup: LookupFunction): Promise<Socket> {
    const dial = undici().buildConnector({ lookup, timeout: connectTimeout, allowH2: false })
    const isHttps = options.protocol === 'https:'
    const port = options.port === '' && isHttps ? '443' : options.port
    const plain = this.#checkSocket(url, await opened(dial, { hostname: options.hostname, protocol: 'http:', port }))
    return isHttps ? secured(plain, { hostname: hostOf(url), verify: true, ca: this.#authorities }) : plain
  }

  #checkSocket(url: Target, socket: Socket): Socket {
    try {
      this.#checkAddress(url, socket.remoteAddress ?? '')
    } catch (error) {
      socket.destroy()
      throw error
    }
    return socket
  }

  async #addressesOf(url: Target): Promise<LookupAddress[]> {
    const host = hostOf(url)
    const addresses =
      isIP(host) > 0
        ? [host]
        : await this.#settings.resolve(host).catch((error: unknown): never => {
            throw new Unreachable(`${host} has no address`, error)
          })
    for (const address of addresses) this.#checkAddress(url, address)
    return addresses.map((address) => ({ address, family: isIP(address) }))
  }
}

/** Completes a TLS handshake within the time for connecting. */
async function secured(plain: Socket, options: TlsOptions): Promise<Socket> {
  const stream = secureStream(plain, options)
  const timeout = Object.assign(new Error('no connection in time'), { code: 'UND_ERR_CONNECT_TIMEOUT' })
  const timer = setTimeout(() => stream.destroy(timeout), connectTimeout)
  try {
    await once(stream, 'secureConnect')
  } finally {
    clearTimeout(timer)
  }
  return stream as unknown as Socket
}

function opened(dial: OutsideDial, options: DialOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    dial(options, (...[failure, socket]) => (failure ? reject(failure) : resolve(socket)))
  })
}

/** A lookup that returns the checked addresses, so that DNS rebinding cannot change them. */
function fixedLookup(addresses: LookupAddress[]): LookupFunction {
  return (_name, input, answer) => {
    if (input.all) answer(null, addresses)
    else answer(null, addresses[0]!.address, addresses[0]!.family)
  }
}

function hostOf(url: Pick<URL, 'hostname'>): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was cut off',
  UND_ERR_SOCKET: 'the connection was cut off',
  UND_ERR_CONNECT_TIMEOUT: 'no connection within 10 s',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
}

/** Why a request failed, as the rest of a sentence. */
export function failureReason(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof Unreachable) return at.message
    const code = (at as NodeJS.ErrnoException).code ?? ''
    if (reasons[code]) return reasons[code]
    if (/^(?:CERT|ERR_TLS|ERR_SSL|UNABLE|SELF_SIGNED|DEPTH_ZERO|HPE)/.test(code)) return `${code}: ${at.message}`.slice(0, 200)
  }
  return error instanceof Error ? error.message.slice(0, 200) : 'it failed'
}
