import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Metrics } from '../../core/metrics.ts'
import type { Endpoint } from '../../net/listen.ts'
import { jsonAnswer } from '../answer/answer.ts'
import type { Answer } from '../route.ts'

/** The place of `/metrics`: on a listener of its own, or on the port of the API with a token; not at all without either. */
export interface MetricsSettings {
  listen?: Endpoint | undefined
  token?: string | undefined
}

/** The path of challenges (RFC 8555 8.3). */
export const challengePath = '/.well-known/acme-challenge/'

/** The names of components that are not ready; empty when the box is ready. */
type Ready = () => Promise<string[]>

/** The sources of health checks and metrics. */
export interface MonitoringDeps {
  ready: Ready
  metrics: Metrics
  /** The key authorization of an ACME HTTP-01 challenge (RFC 8555 8.3); undefined for an unknown token. */
  challenge?: ((token: string) => string | undefined | Promise<string | undefined>) | undefined
}

/**
 * Answers `/healthz`, `/readyz`, `/metrics` and ACME challenges, without rate limits; undefined for other paths.
 */
export function answerProbe(
  path: string,
  request: IncomingMessage,
  { ready, metrics, token, challenge }: MonitoringDeps & { token: string | undefined },
): Promise<Answer> | Answer | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
  if (path === '/healthz') return jsonAnswer(200, '{"status":"ok"}')
  if (path === '/readyz') return readiness(ready)
  if (path === '/metrics' && token !== undefined && hasToken(request.headers.authorization, token)) return metricsAnswer(metrics)
  const text = path.startsWith(challengePath) ? challenge?.(path.slice(challengePath.length)) : undefined
  if (text === undefined) return undefined
  return typeof text === 'string' ? challengeAnswer(text) : text.then(challengeAnswer)
}

function challengeAnswer(text: string | undefined): Answer {
  return text === undefined
    ? { ...jsonAnswer(404, 'Not found\n'), type: 'text/plain' }
    : { ...jsonAnswer(200, text), type: 'application/octet-stream' }
}

/** The handler of the listener for metrics. */
export function metricsHandler(metrics: Metrics): RequestListener {
  return (request, response) => {
    const known = request.url === '/metrics' && (request.method === 'GET' || request.method === 'HEAD')
    const answer = known ? metricsAnswer(metrics) : Promise.resolve({ ...jsonAnswer(404, 'Not found\n'), type: 'text/plain' })
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

async function metricsAnswer(metrics: Metrics): Promise<Answer> {
  return { status: 200, type: metrics.contentType, body: await metrics.text(), headers: {} }
}

function hasToken(authorization: string | undefined, token: string): boolean {
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
