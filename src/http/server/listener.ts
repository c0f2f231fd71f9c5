import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import {
  createServer as createPlain,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createSecure, type Server as SecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { Duplex } from 'node:stream'
import type { AddressLimiter } from './address-limiter.ts'

/** PEM texts. */
export interface TlsPair {
  cert: string
  key: string
}

/** Which certificate a port shows; asked again for each that is renewed. */
export interface Shown {
  certificate: () => TlsPair
  /** What is shown to who asks for this host, if it is another than usually. */
  named?: ((host: string) => SecureContext | undefined) | undefined
}

/** Milliseconds. The idle time is above the longest wait a handler may have, 120 s. */
export interface Timeouts {
  headers: number
  request: number
  keepAlive: number
  idle: number
}

const timeout: Timeouts = { headers: 10_000, request: 30_000, keepAlive: 15_000, idle: 150_000 }

/** Requests of one connection that may wait for their answers (RFC 9112 9.3.2); whoever sends more of them ahead is cut off. */
const maxAhead = 32

/** Connections that may wait to be taken, where the system allows as many; beyond them a client hears nothing for a second, and tries again. */
const backlog = 4096

/** Requests after which a connection is closed. Counted by hand: Node answers each beyond them with 503, and a packet holds thousands. */
const maxRequests = 1000

/** Says, in the API's words, that what came is no HTTP: answers the body, the request id, and what headers belong to them. */
export type Complain = (
  code: string,
  message: string,
  socket: Duplex,
) => { body: string; requestId: string; headers?: Record<string, string> }

/** Takes over connections that stop being HTTP. */
export interface Upgrader {
  wants(request: IncomingMessage): boolean
  take(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>
}

/** One port that speaks HTTP, with or without TLS, patient within bounds, and polite to what is no HTTP. */
export class Listener {
  readonly #server: Server | SecureServer
  readonly #complain: Complain
  /** The answer being made on a connection, so that a complaint never lands inside one. */
  readonly #answers = new WeakMap<Duplex, ServerResponse>()
  /** Requests of each connection: all, and those that are not answered yet. */
  readonly #requests = new WeakMap<Duplex, { all: number; ahead: number }>()
  /** Connections that are no HTTP any more: they have limits of their own and do not count as connections here. */
  readonly #upgraded = new Set<Duplex>()
  #maxConnections = 0
  #open = 0

  constructor(
    handler: RequestListener,
    complain: Complain,
    options: {
      tls?: Shown | undefined
      timeout?: Partial<Timeouts>
      upgrader?: Upgrader
      crowd?: AddressLimiter
      unsecured?: () => void
    } = {},
  ) {
    const bounds = { ...timeout, ...options.timeout }
    const settings = {
      connectionsCheckingInterval: Math.min(1000, bounds.headers),
      headersTimeout: bounds.headers,
      // kept by hand below: there are calls that may take longer
      requestTimeout: 0,
      keepAliveTimeout: bounds.keepAlive,
      maxHeaderSize: 16 * 1024,
      // Node's own refusal has no body; the guard says it in the API's words.
      requireHostHeader: false,
      shouldUpgradeCallback: (request: IncomingMessage) => options.upgrader?.wants(request) ?? false,
    }
    const serve: RequestListener = (request, response) => {
      if (!this.#mayAsk(request.socket, response)) return
      this.#answers.set(request.socket, response)
      this.#bound(request, bounds.request)
      handler(request, response)
    }
    const { tls } = options
    this.#server = tls
      ? createSecure({ ...settings, ...tls.certificate(), ...byName(tls), minVersion: 'TLSv1.2' }, serve)
      : createPlain(settings, serve)
    this.#server.timeout = bounds.idle
    this.#complain = complain
    this.#server.on('connection', (socket: Socket) => {
      this.#open++
      socket.once('close', () => this.#open--)
    })
    if (options.unsecured) this.#server.on('tlsClientError', options.unsecured)
    const { crowd } = options
    // before TLS, whose handshake is the dear part of a connection
    if (crowd) this.#server.prependListener('connection', (socket: Socket) => crowd.enter(socket))
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => this.#refuse(error, socket))
    // Node would answer 417, which is none of the API's statuses; an unknown expectation is simply not met.
    this.#server.on('checkExpectation', serve)
    const { upgrader } = options
    if (upgrader) {
      this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        this.#keep(socket)
        void upgrader.take(request, socket, head)
      })
    }
  }

  /** `listen` is `host:port`, `[v6]:port` or `:port`; answers where it really listens (port 0 picks one). */
  async start(listen: string, maxConnections: number): Promise<AddressInfo> {
    const { host, port } = readListen(listen)
    this.limit(maxConnections)
    this.#server.listen({ host, port, backlog })
    await once(this.#server, 'listening')
    this.#server.on('error', () => undefined)
    return this.#server.address() as AddressInfo
  }

  /** Listens on a socket of the file system that nobody but its owner can open; one that a killed process left is replaced. */
  async startAt(path: string): Promise<void> {
    rmSync(path, { force: true })
    this.#server.listen({ path })
    await once(this.#server, 'listening')
    chmodSync(path, 0o600)
    this.#server.on('error', () => undefined)
  }

  /** Connections that are open, those that stopped being HTTP among them. */
  get connections(): number {
    return this.#open
  }

  /** New connections get the new certificate. */
  renew(certificate: TlsPair): void {
    if ('setSecureContext' in this.#server) this.#server.setSecureContext({ ...certificate, minVersion: 'TLSv1.2' })
  }

  limit(maxConnections: number): void {
    this.#maxConnections = maxConnections
    this.#server.maxConnections = maxConnections + this.#upgraded.size
  }

  /** Takes no more connections; resolves when the last one is closed. */
  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeIdleConnections()
    await closed
  }

  cut(): void {
    this.#server.closeAllConnections()
    for (const socket of this.#upgraded) socket.destroy()
  }

  /** False once the connection is closed, or was now: one packet holds thousands of requests, and all of them would be begun at once. */
  #mayAsk(socket: Duplex, response: ServerResponse): boolean {
    if (socket.destroyed) return false
    const requests = this.#requests.get(socket) ?? { all: 0, ahead: 0 }
    requests.all += 1
    requests.ahead += 1
    if (requests.ahead > maxAhead || requests.all > maxRequests) {
      socket.destroy()
      return false
    }
    if (requests.all === 1) this.#requests.set(socket, requests)
    if (requests.all === maxRequests) response.shouldKeepAlive = false
    response.once('close', () => (requests.ahead -= 1))
    return true
  }

  /** A body must come in time, unless whoever takes it says that it is an `upload`: that has bounds of its own. */
  #bound(request: IncomingMessage, most: number): void {
    const { 'transfer-encoding': encoding, 'content-length': length } = request.headers
    if (encoding === undefined && (length === undefined || length === '0')) return
    const timer = setTimeout(() => {
      if (!request.complete) this.#refuse({ code: 'ERR_HTTP_REQUEST_TIMEOUT' }, request.socket)
    }, most)
    const free = (): void => clearTimeout(timer)
    request.once('upload', free).once('close', free)
  }

  #keep(socket: Duplex): void {
    this.#upgraded.add(socket)
    this.limit(this.#maxConnections)
    socket.once('close', () => {
      this.#upgraded.delete(socket)
      this.limit(this.#maxConnections)
    })
  }

  #refuse(error: Pick<NodeJS.ErrnoException, 'code'>, socket: Duplex): void {
    const answer = this.#answers.get(socket)
    const answering = answer !== undefined && !answer.writableFinished && answer.headersSent
    if (error.code === 'ECONNRESET' || !socket.writable || answering) {
      socket.destroy()
      return
    }
    const [code, message] = complaints[error.code ?? ''] ?? ['malformed_request', 'The request is not valid HTTP/1.1.']
    const { body, requestId, headers = {} } = this.#complain(code, message, socket)
    const head = [
      'HTTP/1.1 400 Bad Request',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      'X-Content-Type-Options: nosniff',
      'Cache-Control: no-store',
      `Date: ${new Date().toUTCString()}`,
      'Connection: close',
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
    // Closing at once, with octets unread, would reset the connection before the answer is read.
    if ('setTimeout' in socket) (socket as Socket).setTimeout(1000, () => socket.destroy())
  }
}

function byName({ named }: Shown): {
  SNICallback?: (host: string, done: (error: null, context?: SecureContext) => void) => void
} {
  return named ? { SNICallback: (host, done) => done(null, named(host)) } : {}
}

const complaints: Record<string, [code: string, message: string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The header fields are larger than 16 KiB.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['malformed_request', 'The chunk extensions are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time.'],
}

function readListen(text: string): { host: string | undefined; port: number } {
  const [, host, port] = /^(.*):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || Number(port) > 65_535) throw new Error(`${JSON.stringify(text)} is no host:port to listen on`)
  return { host: host === '' || host === '*' ? undefined : host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}
