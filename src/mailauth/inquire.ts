import type { Discovery } from './checks.ts'
import { Dns, type DnsSettings, Inquiry, type Lookup } from '../net/dns.ts'

/** A group of DNS queries: each is sent once, and nothing is cached from before. */
export interface FreshInquiry {
  lookup: Lookup
  /** The SPF result of a receiver for mail of the domain from an address (RFC 7208), and the reason. */
  spf: (client: { ip: string; domain: string }) => Promise<{ result: string; reason: string | null }>
  /** The DMARC record of a domain. Throws when the DNS gives no definite answer. */
  dmarc: (domain: string) => Promise<Discovery>
  /** Ends the inquiry: pending queries are abandoned. */
  close(): void
}

/** Starts an inquiry of at most 15 s. `hostname` is ours. */
export function inquire({ dns, hostname }: { dns: DnsSettings; hostname: string }): FreshInquiry {
  const inquiry = new Inquiry(new Dns(dns).lookup, { deadline: 15_000, limit: 120 })
  return {
    lookup: inquiry.lookup,
    spf: async ({ ip, domain }) => {
      const { checkSpf } = await checks()
      return checkSpf({ remote_address: ip, mail_from: `postmaster@${domain}`, helo: hostname }, inquiry, hostname)
    },
    dmarc: async (domain) => (await checks()).discoverDmarc(domain, inquiry.lookup),
    close: () => inquiry.close(),
  }
}

// the examiners load the library of checks; the main thread only when it asks about itself
const checks = () => import('./checks.ts')
