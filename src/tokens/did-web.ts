import { percentDecoded } from '../core/text.ts'

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
