import { fromBase64, parsed, utf8 } from './bytes.ts'
import { PillarboxError } from './errors.ts'
import type { Event } from './types.ts'

/** Of a web framework or of Node.js. */
type WebhookHeaders = Headers | Record<string, string | string[] | undefined>

/**
 * Verifies a delivery (Standard Webhooks) and returns its event. `rawBody` is the body as received, before any parser. Throws PillarboxError:
 * `webhook_unsigned`, `webhook_too_old` (more than `tolerance` seconds from now; 300 by default) or `webhook_forged`; answer those with 401.
 * `bad_secret`: without a secret nothing is verified.
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  { tolerance = 300, now = Date.now() }: { tolerance?: number; now?: number } = {},
): Promise<Event> {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => read(headers, `webhook-${name}`))
  if (!id || !timestamp || !signatures) throw refused('unsigned', 'has no webhook-signature, webhook-id and webhook-timestamp')
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= tolerance))
    throw refused('too_old', `was not sent within ${tolerance} s of now`)
  const body = typeof rawBody === 'string' ? utf8(rawBody) : rawBody
  const head = utf8(`${id}.${timestamp}.`)
  const signed = new Uint8Array(head.length + body.length)
  signed.set(head)
  signed.set(body, head.length)
  const bytes = secret.startsWith('whsec_') ? fromBase64(secret.slice(6)) : utf8(secret)
  if (bytes.length === 0) throw new PillarboxError('The secret is empty or malformed.', 'bad_secret')
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  for (const one of signatures.split(' ')) {
    // verify compares in constant time
    if (one.startsWith('v1,') && (await crypto.subtle.verify('HMAC', key, fromBase64(one.slice(3)), signed))) {
      return parsed(body) as Event
    }
  }
  throw refused('forged', 'was not signed with this secret')
}

function refused(code: string, why: string): PillarboxError {
  return new PillarboxError(`The webhook request ${why}.`, `webhook_${code}`)
}

/** In any case; empty without it. */
function read(headers: WebhookHeaders, name: string): string {
  const fields = headers instanceof Headers ? [...headers] : Object.entries(headers)
  return String(fields.find(([key]) => key.toLowerCase() === name)?.[1] ?? '')
}
