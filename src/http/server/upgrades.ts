import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import { Fault } from '../../core/fault.ts'
import { newId } from '../../core/ids.ts'
import type { Log } from '../../core/log.ts'
import { checkRequest } from '../request-checks.ts'
import type { AccessLog } from './access-log.ts'
import { errorBody, problemOf } from '../problem.ts'
import { type RateLimitState, tooMany } from '../rate.ts'
import { readQuery, readTarget } from '../target.ts'

/** A request to open a WebSocket that has passed the HTTP checks. */
export interface UpgradeRequest {
  request: IncomingMessage
  socket: Duplex
  /** Bytes that followed the request. */
  head: Buffer
  query: Record<string, string>
  /** The client address behind trusted proxies. */
  address: string
  user_agent: string
}

/** A path that is upgraded to a WebSocket, declared by a module. */
export interface Upgrade {
  /** The whole path, `/v1/realtime`. */
  path: string
  /** Takes over the socket, or throws a Fault before it has written anything. */
  handle(arrival: UpgradeRequest): Promise<void>
  /** Closes all of its sockets when the box stops. */
  close(): void
}

interface UpgradeDeps {
  accessLog: AccessLog
  log: Log
  headers: () => Readonly<Record<string, string>>
  /** Origins whose pages may open sockets. */
  origins: () => readonly string[]
  address: (request: IncomingMessage) => string
  /** Counts a refused call against its address. */
  count: (address: string) => RateLimitState | undefined
}

/**
 * Handles WebSocket requests on every listener. A refused request gets a status and the usual error body before the upgrade. Pages may connect only
 * from origins that may also read responses, as CORS does not apply to WebSockets (RFC 6455 10.2).
 */
export class Upgrades {
  readonly #upgrades: ReadonlyMap<string, Upgrade>
  readonly #deps: UpgradeDeps
  #closing = false

  constructor(upgrades: readonly Upgrade[], deps: UpgradeDeps) {
    this.#upgrades = new Map(upgrades.map((upgrade) => [upgrade.path, upgrade]))
    this.#deps = deps
  }

  /** True if this request is ours; any other with an `Upgrade` field is an ordinary call (RFC 9110 7.8). */
  wants(request: IncomingMessage): boolean {
    return request.headers.upgrade?.toLowerCase() === 'websocket' && this.#upgrades.has(pathOf(request))
  }

  /** Never throws, never rejects. */
  async take(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // the client may disconnect while it is admitted
    socket.on('error', () => socket.destroy())
    const began = performance.now()
    const requestId = newId('req')
    const address = this.#deps.address(request)
    const route = pathOf(request)
    let status = 101
    try {
      await this.#admit(request, socket, head, { address, route })
    } catch (error) {
      status = this.#refuse(socket, error, { address, requestId, route })
    }
    this.#deps.accessLog.note({
      request_id: requestId,
      method: request.method ?? '',
      route,
      status,
      began,
      key_id: null,
      session_id: null,
      address,
      cut: undefined,
    })
  }

  /** Refuses new sockets and closes the open ones. */
  close(): void {
    this.#closing = true
    for (const upgrade of this.#upgrades.values()) upgrade.close()
  }

  async #admit(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    { address, route }: { address: string; route: string },
  ): Promise<void> {
    if (this.#closing) {
      throw new Fault('internal_error', 'The box is restarting. Try again shortly.', { code: 'restarting', retryAfter: 2 })
    }
    checkRequest(request)
    const { origin } = request.headers
    if (origin !== undefined && !this.#deps.origins().includes(origin)) {
      throw new Fault(
        'forbidden',
        'Pages of this origin may not open WebSockets here; http.cors_origins lists the allowed origins.',
        {
          code: 'origin_not_allowed',
        },
      )
    }
    const query = readQuery(readTarget(request.url ?? '').search)
    const user_agent = request.headers['user-agent'] ?? ''
    await this.#upgrades.get(route)!.handle({ request, socket, head, query, address, user_agent })
  }

  #refuse(socket: Duplex, thrown: unknown, call: { address: string; requestId: string; route: string }): number {
    const rateLimit = this.#deps.count(call.address)
    const error = rateLimit && rateLimit.retryAfter > 0 ? tooMany(rateLimit) : thrown
    const problem = problemOf(error)
    if (!(thrown instanceof Fault)) {
      this.#deps.log.error(
        { request_id: call.requestId, route: call.route, err: thrown },
        'request failed with an internal error',
      )
    }
    const body = errorBody(problem, call.requestId)
    const headers = {
      ...this.#deps.headers(),
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      'X-Request-Id': call.requestId,
      Date: new Date().toUTCString(),
      ...(error instanceof Fault && error.retryAfter !== undefined ? { 'Retry-After': String(Math.ceil(error.retryAfter)) } : {}),
      ...(problem.status === 401 ? { 'WWW-Authenticate': 'Bearer realm="pillarbox"' } : {}),
      Connection: 'close',
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    // ended, not destroyed, so that the client can read the response; it is destroyed when the client does not close
    socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`)
    socket.resume()
    setTimeout(() => socket.destroy(), 1000).unref()
    return problem.status
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0]!
}
