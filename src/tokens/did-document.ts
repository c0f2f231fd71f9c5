import { keyOfMultikey } from './jose.ts'

/** The parts of a DID document that declare its keys, unvalidated. */
export interface UnverifiedDidDocument {
  id?: unknown
  verificationMethod?: unknown
  assertionMethod?: unknown
}

type Method = Record<string, unknown>

/**
 * The `x` of the Ed25519 key that a DID document lists under `#kid` as assertionMethod, as a JWK or as a Multikey; `kid` may also be the
 * full URL of the key. Undefined when there is none, when the name is ambiguous, and when another DID controls the key.
 */
export function assertionKey(document: UnverifiedDidDocument, did: string, kid: string): string | undefined {
  if (document.id !== did) return undefined
  const name = kid.slice(kid.startsWith(`${did}#`) ? did.length + 1 : kid.startsWith('#') ? 1 : 0)
  if (name === '' || name.includes('#')) return undefined
  const names = [`${did}#${name}`, `#${name}`]
  const isNamed = (id: unknown): boolean => typeof id === 'string' && names.includes(id)
  const listed = listOf(document.assertionMethod)
  const embedded = listed.filter(isMethod).filter(({ id }) => isNamed(id))
  if (!listed.some(isNamed) && embedded.length === 0) return undefined
  const [method, ...more] = [
    ...embedded,
    ...listOf(document.verificationMethod)
      .filter(isMethod)
      .filter(({ id }) => isNamed(id)),
  ]
  if (!method || more.length > 0 || method['controller'] !== did) return undefined
  return keyOf(method, [name, ...names])
}

function keyOf({ type, publicKeyJwk: jwk, publicKeyMultibase: multibase }: Method, names: string[]): string | undefined {
  if (type === 'JsonWebKey2020' || type === 'JsonWebKey') {
    if (multibase !== undefined || !isMethod(jwk) || jwk['kty'] !== 'OKP' || jwk['crv'] !== 'Ed25519') return undefined
    if ((jwk['alg'] ?? 'EdDSA') !== 'EdDSA' || (jwk['use'] ?? 'sig') !== 'sig') return undefined
    if (jwk['kid'] !== undefined && !names.some((name) => name === jwk['kid'])) return undefined
    const { x } = jwk
    return typeof x === 'string' && /^[\w-]{43}$/.test(x) ? x : undefined
  }
  if (type !== 'Multikey' && type !== 'Ed25519VerificationKey2020') return undefined
  if (jwk !== undefined || typeof multibase !== 'string') return undefined
  return keyOfMultikey(multibase)?.toString('base64url')
}

/** Single values may be given without a list. */
function listOf(value: unknown): unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? (value as unknown[]) : [value]
}

function isMethod(value: unknown): value is Method {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
