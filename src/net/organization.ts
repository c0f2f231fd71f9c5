import { getDomain } from 'tldts'

/** The registrable domain by the public suffix list, private suffixes included; the domain itself if it is a suffix. */
export function organizationOf(domain: string): string {
  return getDomain(domain, { allowPrivateDomains: true }) ?? domain
}
