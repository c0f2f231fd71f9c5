import type { Clock } from '../../core/clock.ts'
import { parseForeign } from '../../core/json.ts'
import { retryAfter } from '../../queue/backoff.ts'
import { callConfigured } from '../../net/configured.ts'
import { Unreachable } from '../../net/outside.ts'
import { Busy, Lost, Rejected } from '../provider.ts'

/** The timeout of one request in milliseconds. */
const timeout = 15_000

/** The largest response in bytes. */
const largest = 256 * 1024

/**
 * Sends a JSON request to a configured server. Throws Busy when it did nothing (429, 503, unreachable), Lost when it may have done it (any
 * other 5xx, no answer), Rejected for any other error status.
 */
export async function ask(
  url: string,
  {
    method,
    headers,
    body,
    signal,
  }: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string; signal?: AbortSignal },
  { who, clock, secrets }: { who: string; clock: Clock; secrets: readonly string[] },
): Promise<Record<string, unknown>> {
  const answer = await callConfigured(new URL(url), {
    method,
    headers: Object.entries({ ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers }).flat(),
    body: body === undefined ? null : Buffer.from(body),
    signal: AbortSignal.any([AbortSignal.timeout(timeout), ...(signal ? [signal] : [])]),
    limit: largest,
    alone: true,
  }).catch((error: unknown): never => {
    const message = error instanceof Error ? error.message : 'it failed'
    throw error instanceof Unreachable
      ? new Busy(`${who} cannot be reached: ${message}`)
      : new Lost(`${who}’s response was lost: ${message}`)
  })
  const { status } = answer
  const text = redact(answer.text, secrets)
  if (status === 429 || status === 503) {
    throw new Busy(`${who} answered ${status}`, retryAfter([answer.headers['retry-after']].flat()[0], clock.now()))
  }
  if (status >= 500) throw new Lost(`${who} answered ${status}`)
  if (status < 200 || status >= 300) throw new Rejected(`http_${status}`, `${who} answered ${status}: ${text.slice(0, 200)}`)
  return objectOf(text)
}

/** A response that is no JSON object counts by its status only. */
function objectOf(text: string): Record<string, unknown> {
  try {
    const value = parseForeign(text, 'The answer')
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** The remote side's message without the secrets it may repeat: it is shown to callers and logged. */
export function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
}
