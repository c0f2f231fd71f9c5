import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Metrics } from '../../core/metrics.ts'
import { jsonAnswer } from '../answer.ts'
import type { Answer } from '../response.ts'

/** Where `/metrics` is read: on a listener of its own, or on the API's port behind a token. Neither: nowhere. */
export interface MetricsSettings {
  listen?: string | undefined
  token?: string | undefined
}

const challenges = '/.well-known/acme-challenge/'

/** The names of what is not ready; empty when the box can do its work. */
export type Ready = () => Promise<string[]>

/** What machines that watch the box are answered from. */
export interface Watched {
  ready: Ready
  metrics: Metrics
  /** What a CA is to read to see that a name is ours (RFC 8555 8.3); undefined for a token that nobody was given. */
  challenge?: ((token: string) => string | undefined) | undefined
}

/**
 * `/healthz`, `/readyz`, `/metrics` and the challenges of a CA: asked by machines that watch the box, never counted or limited. Else
 * undefined.
 */
export function inspect(
  path: string,
  request: IncomingMessage,
  { ready, metrics, token, challenge }: Watched & { token: string | undefined },
): Promise<Answer> | Answer | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
  if (path === '/healthz') return jsonAnswer(200, '{"status":"ok"}')
  if (path === '/readyz') return readiness(ready)
  if (path === '/metrics' && token !== undefined && holds(request.headers.authorization, token)) return figures(metrics)
  const text = path.startsWith(challenges) ? challenge?.(path.slice(challenges.length)) : undefined
  return text === undefined ? undefined : { ...jsonAnswer(200, text), type: 'application/octet-stream' }
}

/** What the listener of metrics alone answers. */
export function metricsHandler(metrics: Metrics): RequestListener {
  return (request, response) => {
    const known = request.url === '/metrics' && (request.method === 'GET' || request.method === 'HEAD')
    const answer = known ? figures(metrics) : Promise.resolve({ ...jsonAnswer(404, 'Not found\n'), type: 'text/plain' })
    answer.then(
      ({ status, type, body }) => response.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body),
      () => response.writeHead(500).end(),
    )
  }
}

async function readiness(ready: Ready): Promise<Answer> {
  const failing = await ready().catch(() => ['readiness'])
  return failing.length === 0
    ? jsonAnswer(200, '{"status":"ok"}')
    : jsonAnswer(503, JSON.stringify({ status: 'unavailable', failing }), { 'Retry-After': '5' })
}

async function figures(metrics: Metrics): Promise<Answer> {
  return { status: 200, type: metrics.contentType, body: await metrics.text(), headers: {} }
}

function holds(authorization: string | undefined, token: string): boolean {
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
