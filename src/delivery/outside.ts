import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import type { LookupFunction, Socket } from 'node:net'
import { callbackify } from 'node:util'
import { Agent, buildConnector, request } from 'undici'
import { Networks } from '../core/networks.ts'
import { allow } from './allowance.ts'
import { Exchange } from './exchange.ts'
import type { OutsideAnswer, RawAnswer } from './exchange.ts'
import { isPublic } from './public-addresses.ts'
import type { Resolve } from './resolve.ts'

export interface OutsideSettings {
  /** Networks that may be reached although they are not public, and over plain http. */
  allow_networks: readonly string[]
  /** Whether strangers may be reached over plain http. */
  allow_http: boolean
  resolve: Resolve
  /** Octets of the largest body that `get` is to read. */
  largest?: number
}

/** Opens a connection; tests put something that must not be called in its place. */
export type Dial = buildConnector.connector

/** A URL that is not reached, with a sentence that says why. */
export class Unreachable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Unreachable'
  }
}

interface Wish {
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body: Uint8Array | null
  deadline: number
  signal: AbortSignal
}

/** Octets that an answer may have in all, what frames its body included; what is read of a body stays far below. */
const answerMost = 512 * 1024

/** Longest time in milliseconds for connecting, TLS included. */
const connectTimeout = 10_000

/**
 * HTTP to strangers: only http(s) without credentials, only to public addresses or allowed networks, checked on the literal, on every
 * address the name has, and on the address connected to. No redirect is followed, nothing is decoded, little is read.
 */
export class Outside {
  readonly #dial: Dial | undefined
  #settings: OutsideSettings
  #allowed: Networks
  #agent: Agent

  constructor(settings: OutsideSettings, dial?: Dial) {
    this.#dial = dial
    this.#settings = settings
    this.#allowed = new Networks(settings.allow_networks)
    this.#agent = this.#connectAnew()
  }

  /** Connections that the new settings might refuse are not used again. */
  reload(settings: OutsideSettings): void {
    const former = this.#agent
    this.#settings = settings
    this.#allowed = new Networks(settings.allow_networks)
    this.#agent = this.#connectAnew()
    void former.close()
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  /** Throws Unreachable when the URL would be refused. A name that has no address now may have one later: `strict` refuses it too. */
  async check(text: string, strict = false): Promise<void> {
    const url = this.#read(text)
    const host = hostOf(url)
    if (isIP(host) > 0) return this.#mayReach(url, host)
    const plain = url.protocol === 'http:' && !this.#settings.allow_http
    const addresses = await this.#settings.resolve(host).catch((error: unknown): string[] => {
      if (!strict && !plain) return []
      throw new Unreachable(`${host} has no address`, error)
    })
    for (const address of addresses) this.#mayReach(url, address)
  }

  /** Posts octets, and answers within `deadline` milliseconds or throws Unreachable with the reason. */
  async post(
    text: string,
    {
      headers,
      body,
      deadline,
      signal,
    }: { headers: Record<string, string>; body: Uint8Array; deadline: number; signal: AbortSignal },
  ): Promise<OutsideAnswer> {
    const {
      status,
      headers: heads,
      bytes,
    } = await this.#ask(text, new Exchange(), { method: 'POST', headers, body, deadline, signal })
    return { status, headers: heads, body: bytes.toString('utf8') }
  }

  /** Fetches at most `largest` octets; a redirect is an answer like any other. Throws Unreachable as `post` does. */
  async get(text: string, wish: { headers: Record<string, string>; deadline: number; signal: AbortSignal }): Promise<RawAnswer> {
    const { largest = 0 } = this.#settings
    return this.#ask(text, new Exchange({ read: largest, kept: largest }), { method: 'GET', body: null, ...wish })
  }

  async #ask(text: string, exchange: Exchange, { method, headers, body, deadline, signal }: Wish): Promise<RawAnswer> {
    const url = this.#read(text)
    if (isIP(hostOf(url)) > 0) this.#mayReach(url, hostOf(url))
    const late = (): void => exchange.cut(new Unreachable(`no whole answer within ${deadline / 1000} s`))
    const cut = (): void => exchange.cut(new Unreachable('it was aborted'))
    const timer = setTimeout(late, deadline)
    signal.addEventListener('abort', cut)
    try {
      const path = url.pathname + url.search
      if (signal.aborted) cut()
      else this.#agent.dispatch({ origin: url.origin, path, method, headers, body }, exchange)
      return await exchange.answer
    } catch (error) {
      throw error instanceof Unreachable ? error : new Unreachable(reason(error), error)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
    }
  }

  #read(text: string): URL {
    const url = URL.parse(text)
    if (!url) throw new Unreachable('it is not a URL')
    if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Unreachable('it must be an https URL')
    // a parser mends these in silence: what is shown would not be what is meant
    if (/[\s\p{Cc}\\]/u.test(text)) throw new Unreachable('it must not hold spaces, control characters or backslashes')
    if (!/^https?:\/\//i.test(text)) throw new Unreachable('it must begin with https://')
    if (/^[^/]+\/\/[^/?#]*@/.test(text)) throw new Unreachable('it must not hold credentials')
    return url
  }

  #mayReach(url: Pick<URL, 'protocol' | 'port'>, address: string): void {
    if (this.#allowed.has(address.replace(/%.*$/, ''))) return
    if (!isPublic(address)) throw new Unreachable(`${address} is not a public address`)
    if (url.protocol === 'http:' && !this.#settings.allow_http) throw new Unreachable('it must be https')
    const port = url.port === '' ? 443 : Number(url.port)
    // what listens there does not speak HTTP, and may take what we send for something else
    if (port < 1024 && port !== 80 && port !== 443) throw new Unreachable(`port ${port} is not for HTTP`)
  }

  #connectAnew(): Agent {
    const open = callbackify((options: Parameters<Dial>[0]) => this.#connect(options))
    const connect: Dial = (options, callback) =>
      open(options, (error: Error | null, socket) => (error ? callback(error, null) : callback(null, socket)))
    return new Agent({
      connect,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 10_000,
      keepAliveMaxTimeout: 30_000,
    })
  }

  async #connect(options: Parameters<Dial>[0]): Promise<Socket> {
    const url = { protocol: options.protocol, port: options.port }
    const addresses = await this.#addressesOf(url, options.hostname.replace(/^\[|\]$/g, ''))
    const dial = this.#dial ?? buildConnector({ lookup: answering(addresses), timeout: connectTimeout, allowH2: false })
    const socket = await new Promise<Socket>((resolve, reject) => {
      dial(options, (...[failure, opened]) => (failure ? reject(failure) : resolve(opened)))
    })
    try {
      this.#mayReach(url, socket.remoteAddress ?? '')
    } catch (error) {
      socket.destroy()
      throw error
    }
    allow(socket, answerMost + (this.#settings.largest ?? 0), () => new Unreachable('it answered too much'))
    return socket
  }

  async #addressesOf(url: Pick<URL, 'protocol' | 'port'>, host: string): Promise<LookupAddress[]> {
    const addresses =
      isIP(host) > 0
        ? [host]
        : await this.#settings.resolve(host).catch((error: unknown): never => {
            throw new Unreachable(`${host} has no address`, error)
          })
    for (const address of addresses) this.#mayReach(url, address)
    return addresses.map((address) => ({ address, family: isIP(address) }))
  }
}

/** What was checked is what is connected to: the name has no second chance to mean something else. */
function answering(addresses: LookupAddress[]): LookupFunction {
  return (_name, wish, answer) => {
    if (wish.all) answer(null, addresses)
    else answer(null, addresses[0]!.address, addresses[0]!.family)
  }
}

/**
 * Posts to a server that the operator named in the settings, wherever it is: no guard. Throws when it answers more than `limit` octets.
 */
export async function postInside(
  url: URL,
  { headers, body, signal, limit }: { headers: string[]; body: Uint8Array; signal: AbortSignal; limit: number },
): Promise<{ status: number; text: string }> {
  return callInside(url, { method: 'POST', headers, body, signal, limit })
}

/** Codes of failures before the first octet was said. */
const unsaid =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_|ERR_TLS|SELF_SIGNED|DEPTH_ZERO|UNABLE_)/

/** As `postInside`, in any method. Throws Unreachable when the server cannot have heard of it, anything else when it may have. */
export async function callInside(
  url: URL,
  wish: { method: 'GET' | 'POST' | 'DELETE'; headers: string[]; body: Uint8Array | null; signal: AbortSignal; limit: number },
): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; text: string }> {
  const { limit, ...asked } = wish
  const answer = await request(url, asked).catch((error: unknown) => {
    throw unsaid.test((error as NodeJS.ErrnoException).code ?? '') ? new Unreachable(reason(error), error) : error
  })
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) throw new Error(`more than ${limit} octets were answered`)
    chunks.push(chunk)
  }
  return { status: answer.statusCode, headers: answer.headers, text: Buffer.concat(chunks).toString('utf8') }
}

function hostOf(url: URL): string {
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

function reason(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof Unreachable) return at.message
    const code = (at as NodeJS.ErrnoException).code ?? ''
    if (reasons[code]) return reasons[code]
    if (/^(?:CERT|ERR_TLS|ERR_SSL|UNABLE|SELF_SIGNED|DEPTH_ZERO|HPE)/.test(code)) return `${code}: ${at.message}`.slice(0, 200)
  }
  return error instanceof Error ? error.message.slice(0, 200) : 'it failed'
}
