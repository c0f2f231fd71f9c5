import type { LookupAddress } from 'node:dns'
import { readFileSync } from 'node:fs'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { callbackify } from 'node:util'
import { Agent, buildConnector, request } from 'undici'
import { ByteBuffer, tooManyChunksReason } from '../core/byte-buffer.ts'
import { Fault } from '../core/fault.ts'
import { Networks } from './networks.ts'
import { allow, Exchange, type OutsideDocument } from './exchange.ts'
import { isPublic } from './public-addresses.ts'
import type { Resolve } from './resolve.ts'

/** What a stranger answered. */
export interface OutsideAnswer extends Omit<OutsideDocument, 'body'> {
  /** The first KiB of the body, as UTF-8. */
  body: string
}

export interface OutsideSettings {
  /** Networks that may be reached although they are not public, and over plain http. */
  allow_networks: readonly string[]
  /** Whether strangers may be reached over plain http. */
  allow_http: boolean
  /** Octets that an answer may have in all, what frames its body included; 512 KiB unless said. */
  largest?: number
  /** A PEM file with certificate authorities that are believed beside those everybody believes. */
  ca_file?: string | undefined
  resolve: Resolve
}

/** How long a stranger may take for the whole of it, in milliseconds, and what cuts it off before. */
export interface CallLimits {
  deadline: number
  signal: AbortSignal
}

/** Opens a connection; tests put something that must not be called in its place. */
export type OutsideDial = buildConnector.connector

/** A URL that is not reached, with a sentence that says why. */
export class Unreachable extends Error {
  /** Whether it was reached, and answered more than was asked for: trying again is of no use. */
  readonly tooLarge: boolean

  constructor(message: string, cause?: unknown, tooLarge = false) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Unreachable'
    this.tooLarge = tooLarge
  }
}

/** Octets that an answer may have in all unless the settings say otherwise. */
const usuallyMost = 512 * 1024

/** What is read of the answer to a post, and kept of it. */
const little = { read: 64 * 1024, kept: 1024 }

/** Longest time in milliseconds for connecting, TLS included. */
const connectTimeout = 10_000

/**
 * HTTP to strangers: only http(s) without credentials, only to public addresses or allowed networks, checked on the literal, on every
 * address the name has, and on the address connected to. No redirect is followed, nothing is decoded, little is read.
 */
export class Outside {
  readonly #dial: OutsideDial | undefined
  #settings: OutsideSettings
  #allowed: Networks
  #agent: Agent
  #authorities: { secureContext: SecureContext }

  /** Throws when the file of certificate authorities cannot be read. */
  constructor(settings: OutsideSettings, dial?: OutsideDial) {
    this.#dial = dial
    this.#settings = settings
    this.#allowed = new Networks(settings.allow_networks)
    this.#authorities = authoritiesOf(settings)
    this.#agent = this.#connectAnew()
  }

  /** Connections that the new settings might refuse are not used again. */
  reload(settings: OutsideSettings): void {
    const former = this.#agent
    this.#authorities = authoritiesOf(settings)
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
    { headers, body, ...limits }: CallLimits & { headers: Record<string, string>; body: Uint8Array },
  ): Promise<OutsideAnswer> {
    const answer = await this.#ask(text, { method: 'POST', headers, body }, limits, new Exchange(little))
    return { ...answer, body: answer.body.toString('utf8') }
  }

  /**
   * Gets a document whole within `deadline` milliseconds; throws Unreachable with the reason, also when it is above `limit` octets. `take` is told of
   * the octets as they come, and a Fault that it throws ends it.
   */
  get(
    text: string,
    {
      limit,
      headers,
      take,
      ...limits
    }: CallLimits & { limit: number; headers?: Record<string, string>; take?: (octets: number) => void },
  ): Promise<OutsideDocument> {
    const heads = { accept: '*/*', 'accept-encoding': 'identity', ...headers }
    const tooMuch = new Unreachable(`it has more than ${limit} octets`, undefined, true)
    const tooMany = new Unreachable(`its answer came in ${tooManyChunksReason}`, undefined, true)
    const exchange = new Exchange({ read: limit, kept: limit, tooMuch, tooMany, take })
    return this.#ask(text, { method: 'GET', headers: heads }, limits, exchange)
  }

  async #ask(
    text: string,
    question: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: Uint8Array },
    { deadline, signal }: CallLimits,
    exchange: Exchange,
  ): Promise<OutsideDocument> {
    const url = this.#read(text)
    if (isIP(hostOf(url)) > 0) this.#mayReach(url, hostOf(url))
    const late = (): void => exchange.cut(new Unreachable(`no whole answer within ${deadline / 1000} s`))
    const cut = (): void => exchange.cut(new Unreachable('it was aborted'))
    const timer = setTimeout(late, deadline)
    signal.addEventListener('abort', cut)
    try {
      const path = url.pathname + url.search
      if (signal.aborted) cut()
      else this.#agent.dispatch({ origin: url.origin, path, ...question }, exchange)
      return await exchange.answer
    } catch (error) {
      throw error instanceof Unreachable || error instanceof Fault ? error : new Unreachable(reason(error), error)
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
    if (this.#allowed.has(address.replace(/%.*/s, ''))) return
    if (!isPublic(address)) throw new Unreachable(`${address} is not a public address`)
    if (url.protocol === 'http:' && !this.#settings.allow_http) throw new Unreachable('it must be https')
    const port = url.port === '' ? 443 : Number(url.port)
    // what listens there does not speak HTTP, and may take what we send for something else
    if (port < 1024 && port !== 80 && port !== 443) throw new Unreachable(`port ${port} is not for HTTP`)
  }

  #connectAnew(): Agent {
    const open = callbackify((options: Parameters<OutsideDial>[0]) => this.#connect(options))
    const connect: OutsideDial = (options, callback) =>
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

  async #connect(options: Parameters<OutsideDial>[0]): Promise<Socket> {
    const url = { protocol: options.protocol, port: options.port }
    const addresses = await this.#addressesOf(url, options.hostname.replace(/^\[|\]$/g, ''))
    const lookup = answering(addresses)
    const dial = this.#dial ?? buildConnector({ lookup, timeout: connectTimeout, allowH2: false, ...this.#authorities })
    const socket = await new Promise<Socket>((resolve, reject) => {
      dial(options, (...[failure, opened]) => (failure ? reject(failure) : resolve(opened)))
    })
    try {
      this.#mayReach(url, socket.remoteAddress ?? '')
    } catch (error) {
      socket.destroy()
      throw error
    }
    allow(socket, this.#settings.largest ?? usuallyMost, () => new Unreachable('it answered too much'))
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

/** Made once: it holds all that everybody believes, which takes long to read, and a connection without one makes its own, outside of the heap. */
function authoritiesOf({ ca_file: file }: OutsideSettings): { secureContext: SecureContext } {
  if (file === undefined) return { secureContext: createSecureContext() }
  return { secureContext: createSecureContext({ ca: [...getCACertificates('default'), readFileSync(file, 'utf8')] }) }
}

/** What was checked is what is connected to: the name has no second chance to mean something else. */
function answering(addresses: LookupAddress[]): LookupFunction {
  return (_name, input, answer) => {
    if (input.all) answer(null, addresses)
    else answer(null, addresses[0]!.address, addresses[0]!.family)
  }
}

/** Codes of failures before the first octet was said. */
const unsaid =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_|ERR_TLS|SELF_SIGNED|DEPTH_ZERO|UNABLE_)/

/**
 * Calls a server that the operator named in the settings, wherever it is: no guard. Throws Unreachable when the server cannot have heard
 * of it, anything else when it may have, also when it answers more than `limit` octets. `alone` has a connection of its own: one that was
 * kept may be closed at the moment it is used again, and then nobody knows whether the server has heard.
 */
export async function callInside(
  url: URL,
  input: {
    method: 'GET' | 'POST' | 'DELETE'
    headers: string[]
    body: Uint8Array | null
    signal: AbortSignal
    limit: number
    alone?: boolean
  },
): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; text: string }> {
  const { limit, alone = false, ...asked } = input
  const answer = await request(url, { ...asked, reset: alone }).catch((error: unknown) => {
    throw unsaid.test((error as NodeJS.ErrnoException).code ?? '') ? new Unreachable(reason(error), error) : error
  })
  return { status: answer.statusCode, headers: answer.headers, text: (await whole(answer.body, limit)).toString('utf8') }
}

async function whole(body: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const octets = new ByteBuffer()
  for await (const chunk of body) {
    if (octets.size + chunk.length > limit) throw new Error(`more than ${limit} octets were answered`)
    octets.add(chunk)
  }
  return octets.take()!
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
