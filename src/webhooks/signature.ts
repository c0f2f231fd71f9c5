import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { mac, type Seal } from '../core/seal/seal.ts'

/** The signed data: the bytes of the body as they are sent. */
interface Signed {
  id: string
  /** Seconds since the Unix epoch. */
  timestamp: number
  body: string | Uint8Array
}

/** A secret prepared for signing. */
export interface WebhookKey {
  text: KeyObject
  /** The key of Standard Webhooks: the bytes after `whsec_`, or the text of a secret without that prefix. */
  octets: KeyObject
}

export function signingKey(secret: string): WebhookKey {
  const text = createSecretKey(Buffer.from(secret))
  return { text, octets: secret.startsWith('whsec_') ? createSecretKey(Buffer.from(secret.slice(6), 'base64')) : text }
}

/**
 * The signature headers of a delivery. `X-Service-Signature` is the hex HMAC-SHA-256 of the body, keyed with the secret as text; the other
 * three are those of Standard Webhooks. With a second secret, both carry a second signature in their own format.
 */
export function signatureHeaders(signed: Signed, key: WebhookKey, previous: WebhookKey | null): Record<string, string> {
  const { id, timestamp, body } = signed
  const head = `${id}.${timestamp}.`
  const keys = previous === null ? [key] : [key, previous]
  return {
    'X-Service-Signature': mac(key.text, body).toString('hex'),
    ...(previous === null ? {} : { 'X-Service-Signature-Previous': mac(previous.text, body).toString('hex') }),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': keys.map((one) => `v1,${mac(one.octets, head, body).toString('base64')}`).join(' '),
  }
}

/** A new signing secret: `whsec_` and base64 of 32 random bytes. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** The encrypted texts of a webhook. Each is bound to its webhook. */
export class Sealed {
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal
  }

  write(webhookId: string, text: string): Buffer {
    return this.#seal.seal(Buffer.from(text), webhookId)
  }

  read(webhookId: string, sealed: Uint8Array): string {
    return this.#seal.open(sealed, webhookId).toString('utf8')
  }
}
