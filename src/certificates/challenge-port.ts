import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Listener } from '../http/server/listener.ts'
import { newId } from '../core/ids.ts'
import { ConnectionLimiter } from '../net/connection-limiter.ts'
import type { Endpoint } from '../net/listen.ts'
import { challengePath } from '../http/server/health.ts'
import type { Challenges } from './challenges.ts'

/** A CA needs few connections, and gets them also where strangers hold all: those of the network with most give way. */
const maxConnections = 1000
const limits = { max_connections: Infinity, max_connections_per_address: 20 }

/** Port 80: answers ACME challenges, and redirects all other requests to the API. */
export class ChallengePort {
  readonly #challenges: Challenges
  readonly #publicUrl: () => string
  readonly #listener: Listener

  constructor(challenges: Challenges, publicUrl: () => string) {
    this.#challenges = challenges
    this.#publicUrl = publicUrl
    this.#listener = new Listener(
      (request, response) => void this.#answer(request, response).catch(() => plain(response, 503, 'Unavailable\n')),
      () => ({ body: '', requestId: newId('req') }),
      {
        timeout: { headers: 5000, request: 10_000, keepAlive: 5000, idle: 15_000 },
        limiter: new ConnectionLimiter(() => limits),
      },
    )
  }

  /** Throws when the port is in use, or not permitted. */
  start(listen: Endpoint): Promise<AddressInfo> {
    return this.#listener.start(listen, maxConnections)
  }

  async stop(): Promise<void> {
    const closed = this.#listener.close()
    this.#listener.cut()
    await closed
  }

  async #answer({ url = '', method }: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = url.startsWith(challengePath) && (method === 'GET' || method === 'HEAD')
    const text = asked ? await this.#challenges.answer(url.slice(challengePath.length)) : undefined
    if (text !== undefined) return plain(response, 200, text, { 'Content-Type': 'application/octet-stream' })
    const target = this.#publicUrl()
    // without TLS this may be the only port of the box
    if (asked || !url.startsWith('/') || !target.startsWith('https:')) return plain(response, 404, 'Not found\n')
    plain(response, 308, '', { Location: `${target}${url}` })
  }
}

function plain(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response
    .writeHead(status, {
      'Content-Type': 'text/plain; charset=utf-8',
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': 'no-store',
      'Content-Length': Buffer.byteLength(text),
      ...headers,
    })
    .end(text)
}
