import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { Chunks } from '../../core/byte-buffer.ts'
import type { ConnectionLimiter } from '../../net/connection-limiter.ts'
import type { Endpoint } from '../../net/listen.ts'
import type { ProxiedConnections } from '../../net/proxied-connections.ts'
import { readInTurns } from '../../net/read-in-turns.ts'
import { readingTurns } from '../../net/reading-turns.ts'
import { discardBody, giveUp } from './give-up.ts'
import { OpenConnections } from './open-connections.ts'
import { interceptConnections, type ServedCertificate, TlsAcceptor, type TlsPair } from './tls-acceptor.ts'

/** Timeouts in milliseconds. The idle timeout is above the longest wait of a handler, 120 s. */
interface Timeouts {
  headers: number
  request: number
  keepAlive: number
  idle: number
}

const timeout: Timeouts = { headers: 10_000, request: 30_000, keepAlive: 15_000, idle: 150_000 }

/** Pipelined requests of one connection (RFC 9112 9.3.2); a client that sends more is disconnected. */
const maxPipelined = 8

/** Small chunks of a body that nobody reads. */
const unreadChunks = 1024

/** Milliseconds for which `close` waits for handshakes that have begun. */
const handshakeGrace = 1000

/** The listen backlog, if the system allows as many; further clients retry after a second. */
const backlog = 4096

/** Requests after which a connection is closed. Counted here, as Node would answer each further one with 503, and a packet holds thousands. */
const maxRequests = 1000

/** Makes the error response to malformed HTTP: its body, request id and headers. */
export type RejectRequest = (
  code: string,
  message: string,
  socket: Duplex,
) => { body: string; requestId: string; headers?: Record<string, string> }

/** Takes over connections that stop being HTTP. */
export interface Upgrader {
  wants(request: IncomingMessage): boolean
  take(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>
}

/** An HTTP or HTTPS port with timeouts, connection limits and API error responses to malformed requests. */
export class Listener {
  readonly #server: Server
  readonly #tls: TlsAcceptor | undefined
  readonly #proxied: ProxiedConnections | undefined
  readonly #reject: RejectRequest
  /** The current response of each connection, so that an error is never written inside one. */
  readonly #answers = new WeakMap<Duplex, ServerResponse>()
  /** Connections whose refusal waits for the answers before it. */
  readonly #refused = new WeakSet<Duplex>()
  /** Requests of each connection: all, and those not answered yet. */
  readonly #requests = new WeakMap<Duplex, { all: number; ahead: number }>()
  /** Upgraded connections, which have limits of their own and do not count here. */
  readonly #upgraded = new Set<Duplex>()
  /** Those that are HTTP. */
  readonly #connections = new OpenConnections()
  #maxConnections = Infinity
  #open = 0

  constructor(
    handler: RequestListener,
    reject: RejectRequest,
    options: {
      tls?: ServedCertificate | undefined
      timeout?: Partial<Timeouts>
      upgrader?: Upgrader
      limiter?: ConnectionLimiter
      proxied?: ProxiedConnections | undefined
      connectionRefused?: () => void
      tlsFailed?: () => void
    } = {},
  ) {
    const bounds = { ...timeout, ...options.timeout }
    const settings = {
      connectionsCheckingInterval: Math.min(1000, bounds.headers),
      headersTimeout: bounds.headers,
      // implemented below, as uploads may take longer
      requestTimeout: 0,
      keepAliveTimeout: bounds.keepAlive,
      maxHeaderSize: 16 * 1024,
      // the refusal of Node has no body; `checkRequest` refuses it in the format of the API
      requireHostHeader: false,
      shouldUpgradeCallback: (request: IncomingMessage) => options.upgrader?.wants(request) ?? false,
    }
    const serve: RequestListener = (request, response) => {
      if (!this.#admitRequest(request.socket, response)) return giveUp(request.socket)
      this.#answers.set(request.socket, response)
      if (hasBody(request)) this.#limitBody(request, response, bounds.request)
      handler(request, response)
    }
    const { tls } = options
    this.#server = createServer(settings, serve)
    this.#tls = tls && new TlsAcceptor(this.#server, tls, { timeout: bounds.headers, failed: options.tlsFailed })
    this.#server.timeout = bounds.idle
    this.#reject = reject
    this.#server.on('connection', (socket: Socket) => {
      this.#open++
      socket.once('close', () => this.#open--)
      if (tls || socket.remoteAddress === undefined) return
      readInTurns(socket)
      // the parser would else read from the system by itself
      socket.on('data', () => undefined)
    })
    const { limiter, connectionRefused } = options
    // before the TLS handshake, which is the expensive part of a connection
    this.#server.prependListener('connection', (socket: Socket) => {
      readingTurns.accepted()
      const address = socket.remoteAddress
      // a peer that has disconnected has no address, nor has one on the control socket
      if (address === undefined) return
      const admission = limiter?.admit(address)
      if (typeof admission === 'string') {
        connectionRefused?.()
        socket.destroy()
        return
      }
      if (admission) socket.once('close', admission)
      const trusted = limiter?.isUncounted(address) ?? false
      if (!this.#connections.add(socket, { max: this.#maxConnections, trusted })) connectionRefused?.()
    })
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => this.#refuse(error, socket))
    // Node would destroy the connection, and with it the answers to the requests before
    this.#server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
      socket.on('error', () => undefined)
      this.#refuse({ code: 'CONNECT' }, socket)
    })
    // Node would write 100 into an answer that waits for those before it
    this.#server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      const goOn = (): void => void (response.headersSent || response.writeContinue())
      if (response.socket === null) response.once('socket', goOn)
      else goOn()
      serve(request, response)
    })
    // Node would answer 417, which the API does not use; an unknown expectation is ignored
    this.#server.on('checkExpectation', serve)
    const { upgrader } = options
    if (upgrader) {
      this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        this.#trackUpgraded(socket)
        void upgrader.take(request, socket, head)
      })
    }
    // before all of these, which see the address of the client
    const { proxied } = options
    this.#proxied = proxied
    if (proxied) interceptConnections(this.#server, (socket, next) => proxied.accept(socket, next))
  }

  /** Returns the bound address. */
  async start({ host, port }: Endpoint, maxConnections: number): Promise<AddressInfo> {
    this.limit(maxConnections)
    this.#server.listen({ host, port, backlog })
    await once(this.#server, 'listening')
    this.#server.on('error', () => undefined)
    return this.#server.address() as AddressInfo
  }

  /** Listens on a Unix socket with mode 600; one that a killed process left is replaced. */
  async startAt(path: string): Promise<void> {
    rmSync(path, { force: true })
    this.#server.listen({ path })
    await once(this.#server, 'listening')
    chmodSync(path, 0o600)
    this.#server.on('error', () => undefined)
  }

  /** Open connections, upgraded ones included. */
  get connections(): number {
    return this.#open
  }

  /** New connections get the new certificate. */
  renew(certificate: TlsPair): void {
    this.#tls?.renew(certificate)
  }

  limit(maxConnections: number): void {
    this.#maxConnections = maxConnections
    // of a burst, before those whose place others took have closed
    this.#server.maxConnections = 2 * maxConnections + this.#upgraded.size
  }

  /** Accepts no more connections; resolves when the last one is closed. */
  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    // connections that the system has taken are accepted in a whole turn of the event loop: what comes next is refused, and a load balancer goes to another box
    await setImmediate()
    await setImmediate()
    // a request that has arrived is answered
    readingTurns.flush()
    this.#server.close()
    this.#server.closeIdleConnections()
    const timer = setTimeout(() => this.#cutUnserved(), handshakeGrace)
    await closed
    clearTimeout(timer)
  }

  cut(): void {
    this.#cutUnserved()
    this.#server.closeAllConnections()
    for (const socket of this.#upgraded) socket.destroy()
  }

  /** Closes what the HTTP server does not know yet: connections without the header of their proxy, or within their handshake. */
  #cutUnserved(): void {
    this.#proxied?.cut()
    this.#tls?.cut()
  }

  /** Returns false, and closes the connection, when it has too many requests: one packet can contain thousands, and all would start immediately. */
  #admitRequest(socket: Duplex, response: ServerResponse): boolean {
    if (socket.destroyed) return false
    const requests = this.#requests.get(socket) ?? { all: 0, ahead: 0 }
    requests.all += 1
    requests.ahead += 1
    if (requests.ahead > maxPipelined || requests.all > maxRequests) return false
    if (requests.all === 1) this.#requests.set(socket, requests)
    if (requests.all === maxRequests) response.shouldKeepAlive = false
    response.once('close', () => (requests.ahead -= 1))
    return true
  }

  /**
   * Limits the time of a body, except for an `upload`, which has limits of its own. Where the response ends before the body, as that of a refusal or of a
   * path that reads none, the connection is closed: a second later, or above a number of chunks.
   */
  #limitBody(request: IncomingMessage, response: ServerResponse, milliseconds: number): void {
    const timer = setTimeout(() => {
      if (!request.complete) this.#refuse({ code: 'ERR_HTTP_REQUEST_TIMEOUT' }, request.socket)
    }, milliseconds)
    const clear = (): void => clearTimeout(timer)
    request.once('upload', clear).once('close', clear)
    // before the response is sent: from then on Node.js would discard the rest, in any number of chunks
    response.once('prefinish', () => {
      if (request.complete) return
      const chunks = new Chunks(unreadChunks)
      request.on('data', (piece: Buffer) => {
        if (chunks.add(piece)) return
        discardBody(request)
        giveUp(request.socket)
      })
      request.read(0)
      const hangUp = (): void => void (request.complete || request.socket.destroy())
      response.once('finish', () => setTimeout(hangUp, 1000).unref())
    })
  }

  #trackUpgraded(socket: Duplex): void {
    this.#upgraded.add(socket)
    if (socket instanceof Socket) this.#connections.remove(socket)
    this.limit(this.#maxConnections)
    socket.once('close', () => {
      this.#upgraded.delete(socket)
      this.limit(this.#maxConnections)
    })
  }

  /** Answers malformed HTTP with 400 and closes, after the answers to the requests before it: they keep their order (RFC 9112 9.3.2). */
  #refuse(error: Pick<NodeJS.ErrnoException, 'code'>, socket: Duplex): void {
    // what follows is malformed too
    if (this.#refused.has(socket) && error.code !== 'ECONNRESET') return
    const answer = this.#answers.get(socket)
    const turn = error.code === 'ECONNRESET' ? undefined : turnBehind(answer)
    if (answer === undefined || turn === undefined) return this.#refuseNow(error, socket)
    this.#refused.add(socket)
    answer.once(turn, () => {
      this.#refused.delete(socket)
      this.#refuse(error, socket)
    })
  }

  #refuseNow(error: Pick<NodeJS.ErrnoException, 'code'>, socket: Duplex): void {
    const answer = this.#answers.get(socket)
    const answering = answer !== undefined && !answer.writableFinished && answer.headersSent
    if (error.code === 'ECONNRESET' || !socket.writable || answering) {
      socket.destroy()
      return
    }
    // of a request that was answered before its body arrived
    const isAnswered = answer !== undefined && !answer.req.complete && answer.writableFinished
    socket.end(isAnswered ? '' : this.#refusal(error, socket))
    // closing at once, with unread bytes, would reset the connection before the client reads the response
    if ('setTimeout' in socket) (socket as Socket).setTimeout(1000, () => socket.destroy())
  }

  #refusal(error: Pick<NodeJS.ErrnoException, 'code'>, socket: Duplex): string {
    const [code, message] = rejections[error.code ?? ''] ?? ['malformed_request', 'The request is not valid HTTP/1.1.']
    const { body, requestId, headers = {} } = this.#reject(code, message, socket)
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
    return `${head.join('\r\n')}\r\n\r\n${body}`
  }
}

/** The event of the last answer of a connection after which a refusal may be written; undefined if that is now. */
function turnBehind(answer: ServerResponse | undefined): 'close' | 'socket' | undefined {
  if (answer === undefined || answer.writableFinished || answer.destroyed) return undefined
  // it is the request behind that is malformed, or a body that nobody waits for
  if (answer.req.complete || answer.writableEnded) return 'close'
  // it is the body of its own, and others are answered before
  return answer.socket === null ? 'socket' : undefined
}

/** True if a body follows the header (RFC 9112 6.3). */
function hasBody({ headers: { 'transfer-encoding': encoding, 'content-length': length } }: IncomingMessage): boolean {
  return encoding !== undefined || (length !== undefined && length !== '0')
}

const rejections: Record<string, [code: string, message: string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The header fields are larger than 16 KiB.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['malformed_request', 'The chunk extensions are too large.'],
  CONNECT: ['malformed_request', 'CONNECT is not available: this is no proxy.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time.'],
}
