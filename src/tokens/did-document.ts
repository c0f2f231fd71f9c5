import { percentDecoded } from '../core/text.ts'
import { keyOfMultikey } from './jose.ts'

/** The parts of a DID document that declare its keys, unvalidated. */
export interface UnverifiedDidDocument {
  id?: unknown
  verificationMethod?: unknown
  assertionMethod?: unknown
}

type Method = Record<string, unknown>

/** What is kept of a DID document, which may be large and is not trusted. */
export interface AssertionKeys {
  /** True if `assertionMethod` lists anything. */
  listsAny: boolean
  /** The `x` of each usable Ed25519 key by its fragment. */
  keys: ReadonlyMap<string, string>
}

/**
 * The Ed25519 keys that a document lists as assertionMethod, as a JWK or as a Multikey. Not among them are those with an ambiguous name, and those
 * that another DID controls.
 */
export function assertionKeys(document: UnverifiedDidDocument, did: string): AssertionKeys {
  const listed = listOf(document.assertionMethod)
  const names = new Set(listed.map((entry) => fragmentOf(isMethod(entry) ? entry['id'] : entry, did)))
  const methods = Map.groupBy([...listed, ...listOf(document.verificationMethod)].filter(isMethod), ({ id }) =>
    fragmentOf(id, did),
  )
  const keys = new Map<string, string>()
  for (const name of names) {
    const [method, ...more] = (name !== undefined && methods.get(name)) || []
    if (!method || more.length > 0 || method['controller'] !== did) continue
    const key = keyOf(method, [name!, `${did}#${name}`, `#${name}`])
    if (key !== undefined) keys.set(name!, key)
  }
  return { listsAny: [document.assertionMethod ?? []].flat().length > 0, keys }
}

/** The key with this `kid`, which may also be the full URL of the key; undefined when there is none. */
export function assertionKey({ keys }: AssertionKeys, did: string, kid: string): string | undefined {
  return keys.get(fragmentOf(kid, did) ?? kid)
}

/** The name of a key of this document; undefined for anything else. */
function fragmentOf(id: unknown, did: string): string | undefined {
  if (typeof id !== 'string') return undefined
  const name = id.startsWith(`${did}#`) ? id.slice(did.length + 1) : id.startsWith('#') ? id.slice(1) : ''
  return name === '' || name.includes('#') ? undefined : name
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

/** The URL at which a did:web is resolved. */
export interface DidWebLocation {
  did: string
  /** The host, with a non-default port. */
  host: string
  url: string
}

/** A path segment: not `.` or `..`, which a URL would remove. */
const step = /^(?!\.{1,2}$)(?:[A-Za-z0-9._~-]|%[0-9A-F]{2}){1,128}$/

/** The location of this DID's document (did:web method specification, 3.2); undefined when it is invalid or ambiguous. */
export function placeOf(did: string): DidWebLocation | undefined {
  const [scheme, method, encoded, ...path] = did.split(':')
  if (scheme !== 'did' || method !== 'web' || encoded === undefined || !/^(?:[a-z0-9.-]|%[0-9A-F]{2})+$/.test(encoded))
    return undefined
  const host = percentDecoded(encoded)
  if (host === undefined || !path.every((one) => step.test(one) && !/%(?:2[EF]|5C|00)/.test(one))) return undefined
  const where = path.length === 0 ? '/.well-known/did.json' : `/${path.join('/')}/did.json`
  const url = URL.parse(`https://${host}${where}`)
  return url?.host === host && url.pathname === where ? { did, host, url: url.href } : undefined
}

/** The DID that is resolved at `/.well-known/did.json` of a host. */
export function didOfHost(host: string): string {
  return `did:web:${encodeURIComponent(host)}`
}
