import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type * as Jose from 'jose'
import type { PublishedKey } from './model.ts'

// loaded with the first key
const jose = (): Promise<typeof Jose> => import('jose')

/** A new key pair; the private half as PKCS #8, the public one as `x` of its JWK. */
export interface FreshKey {
  kid: string
  public_key: string
  secret: Buffer
}

/** Generates an Ed25519 pair; its name is the thumbprint of its public half (RFC 7638). */
export async function freshKey(): Promise<FreshKey> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const public_key = publicKey.export({ format: 'jwk' }).x!
  return { kid: await thumbprint(public_key), public_key, secret: privateKey.export({ format: 'der', type: 'pkcs8' }) }
}

/** The RFC 7638 thumbprint of an Ed25519 key, from the `x` of its JWK. */
async function thumbprint(x: string): Promise<string> {
  return (await jose()).calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x })
}

/** Parses PKCS #8. */
export function privateKeyOf(secret: Buffer): KeyObject {
  return createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' })
}

/** A public key as published. */
export function asPublished(kid: string, x: string): PublishedKey {
  return {
    kid,
    jwk: { kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' },
    multibase: multikeyOf(Buffer.from(x, 'base64url')),
  }
}

/** A compact JWS (RFC 7515) by EdDSA. */
export async function sign(payload: string, header: { kid: string; typ: string; cty?: string }, key: KeyObject): Promise<string> {
  const { CompactSign } = await jose()
  return new CompactSign(Buffer.from(payload)).setProtectedHeader({ alg: 'EdDSA', ...header }).sign(key)
}

/** True if the signature of a compact JWS is by the Ed25519 key with this `x`; anything malformed is false. */
export async function isSignedBy(token: string, x: string): Promise<boolean> {
  const { compactVerify, importJWK } = await jose()
  try {
    const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x }, 'EdDSA')
    await compactVerify(token, key, { algorithms: ['EdDSA'] })
    return true
  } catch {
    return false
  }
}

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** The multicodec of ed25519-pub, as a varint. */
const prefix = Buffer.from([0xed, 0x01])

/** Encodes an Ed25519 public key (32 bytes) as a Multikey: multibase base58btc of multicodec and key, `z6Mk…`. */
export function multikeyOf(key: Uint8Array): string {
  let number = BigInt(`0x${Buffer.concat([prefix, key]).toString('hex')}`)
  let text = ''
  for (; number > 0n; number /= 58n) text = alphabet[Number(number % 58n)]! + text
  return `z${text}`
}

/** Decodes a Multikey to the 32 bytes of an Ed25519 public key; undefined for any other text. */
export function keyOfMultikey(text: string): Buffer | undefined {
  if (!/^z6Mk[1-9A-HJ-NP-Za-km-z]{44}$/.test(text)) return undefined
  let number = 0n
  for (const character of text.slice(1)) number = number * 58n + BigInt(alphabet.indexOf(character))
  const octets = Buffer.from(number.toString(16), 'hex')
  return octets.length === 34 && octets.subarray(0, 2).equals(prefix) ? octets.subarray(2) : undefined
}
