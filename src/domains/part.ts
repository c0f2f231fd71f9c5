import type { Part } from '../part.ts'
import type { Domains } from './domains.ts'
import { domainFailed, domainVerified } from './model.ts'
import { sealedKeys } from './sealed.ts'

/** Our domains: what the DNS must say of them, and whether it does. */
export function domainsPart(domains: Domains): Part {
  return { name: 'domains', events: [domainVerified, domainFailed], sealed: [sealedKeys], start: () => domains.start() }
}
