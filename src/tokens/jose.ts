import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, CompactSign, compactVerify, importJWK } from 'jose'
import type { PublishedKey } from './model.ts'
import { multikeyOf } from './multikey.ts'

/** A pair nobody has seen yet; the private half as PKCS #8, the public one as `x` of its JWK. */
export interface FreshKey {
  kid: string
  public_key: string
  secret: Buffer
}

/** A new Ed25519 pair; its name is the thumbprint of its public half (RFC 7638). */
export async function freshKey(): Promise<FreshKey> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const public_key = publicKey.export({ format: 'jwk' }).x!
  return { kid: await thumbprint(public_key), public_key, secret: privateKey.export({ format: 'der', type: 'pkcs8' }) }
}

/** The RFC 7638 thumbprint of an Ed25519 key, from the `x` of its JWK. */
export function thumbprint(x: string): Promise<string> {
  return calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x })
}

/** Reads PKCS #8. */
export function privateKeyOf(secret: Buffer): KeyObject {
  return createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' })
}

/** A public key as the world gets it. */
export function asPublished(kid: string, x: string): PublishedKey {
  return {
    kid,
    jwk: { kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' },
    multibase: multikeyOf(Buffer.from(x, 'base64url')),
  }
}

/** A compact JWS (RFC 7515) by EdDSA. */
export function sign(payload: string, header: { kid: string; typ: string; cty?: string }, key: KeyObject): Promise<string> {
  return new CompactSign(Buffer.from(payload)).setProtectedHeader({ alg: 'EdDSA', ...header }).sign(key)
}

/** Whether the signature of a compact JWS is by the Ed25519 key with this `x`; whatever else may be wrong with either reads as no. */
export async function isSignedBy(token: string, x: string): Promise<boolean> {
  try {
    const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x }, 'EdDSA')
    await compactVerify(token, key, { algorithms: ['EdDSA'] })
    return true
  } catch {
    return false
  }
}
