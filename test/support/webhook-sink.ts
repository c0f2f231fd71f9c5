import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** One request as it arrived. */
export interface Received {
  path: string
  headers: IncomingHttpHeaders
  raw: string
  body: { id: string; event: string; type: string; identity_id: string | null; created_at: string; data: Record<string, unknown> }
}

export type Behaviour = (response: ServerResponse, received: Received) => void

/** Answers with this status and these headers. */
export function says(status: number, headers: Record<string, string> = {}, body = ''): Behaviour {
  return (response) => void response.writeHead(status, headers).end(body)
}

/** Takes the request and never answers. */
export const hangs: Behaviour = () => undefined

/** Answers well, after this many milliseconds. */
export function takes(milliseconds: number): Behaviour {
  return (response) => {
    const timer = setTimeout(() => response.writeHead(200).end('thanks'), milliseconds)
    response.on('close', () => clearTimeout(timer))
  }
}

/** Begins a good answer and goes on with one octet at a time, for ever. */
export const drips: Behaviour = (response) => {
  response.writeHead(200)
  const timer = setInterval(() => response.write('.'), 20)
  response.on('close', () => clearInterval(timer))
}

/** Somebody else's server, on loopback: a true HTTP server that keeps what it got, and misbehaves on demand. */
export class WebhookSink {
  readonly received: Received[] = []
  /** Called for each request, unless its path has one of its own. */
  behaviour: Behaviour = says(200, {}, 'thanks')
  readonly paths = new Map<string, Behaviour>()
  /** How many requests came whole, how many connections were made. */
  connections = 0
  readonly #waiting = new Set<() => void>()
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => undefined)
    request.on('end', () => {
      const raw = Buffer.concat(chunks).toString('utf8')
      const received: Received = { path: request.url ?? '', headers: request.headers, raw, body: parsed(raw) }
      this.received.push(received)
      ;(this.paths.get(received.path) ?? this.behaviour)(response, received)
      for (const look of this.#waiting) look()
    })
  })

  /** Stopped when the test ends. */
  static async start(port = 0, host = '127.0.0.1'): Promise<WebhookSink> {
    const sink = await WebhookSink.open(port, host)
    onTestFinished(() => sink.stop())
    return sink
  }

  static async open(port = 0, host = '127.0.0.1'): Promise<WebhookSink> {
    const sink = new WebhookSink()
    sink.#server.on('connection', () => (sink.connections += 1))
    sink.#server.listen(port, host)
    await once(sink.#server, 'listening')
    return sink
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Resolves when that many requests (of those that match) have come; answers them. */
  until(count: number, match: (received: Received) => boolean = () => true): Promise<Received[]> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.received.filter(match)
        if (found.length < count) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}

function parsed(raw: string): Received['body'] {
  try {
    return JSON.parse(raw) as Received['body']
  } catch {
    return { id: '', event: '', type: '', identity_id: null, created_at: '', data: {} }
  }
}
