import { mac } from '../core/seal.ts'

/** What is signed: the octets of the body are exactly those that are sent. */
export interface Signed {
  id: string
  /** Seconds since the Unix epoch. */
  timestamp: number
  body: string
}

/**
 * The headers that prove a delivery. `X-Service-Signature` is the hex HMAC-SHA-256 of the body, keyed with the secret as shown; the other
 * three are those of Standard Webhooks. With a second secret, both say so in their own way.
 */
export function signatureHeaders(signed: Signed, secret: string, previous: string | null): Record<string, string> {
  const { id, timestamp, body } = signed
  const content = `${id}.${timestamp}.${body}`
  const secrets = previous === null ? [secret] : [secret, previous]
  return {
    'X-Service-Signature': mac(Buffer.from(secret), body).toString('hex'),
    ...(previous === null ? {} : { 'X-Service-Signature-Previous': mac(Buffer.from(previous), body).toString('hex') }),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((one) => `v1,${mac(keyOf(one), content).toString('base64')}`).join(' '),
  }
}

/** What Standard Webhooks keys with: the octets after `whsec_`, or the text of a secret without that prefix. */
function keyOf(secret: string): Buffer {
  return secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret)
}
