import { checkSpf, discoverDmarc, type Discovery } from './checks.ts'
import { Dns, type DnsSettings, Inquiry, type Lookup } from '../net/dns.ts'

/** Questions to the DNS that belong together: each is asked once, and nothing is remembered from before. */
export interface FreshInquiry {
  lookup: Lookup
  /** What a receiver makes of mail in the domain's name from an address (RFC 7208), and why. */
  spf: (client: { ip: string; domain: string }) => Promise<{ result: string; reason: string | null }>
  /** A domain's DMARC record. Throws when the DNS gives no clear answer. */
  dmarc: (domain: string) => Promise<Discovery>
  /** Ends it: what has no answer yet is not waited for. */
  close(): void
}

/** Begins to ask, for at most 15 s. `hostname` is ours. */
export function inquire({ dns, hostname }: { dns: DnsSettings; hostname: string }): FreshInquiry {
  const inquiry = new Inquiry(new Dns(dns).lookup, { deadline: 15_000, limit: 120 })
  return {
    lookup: inquiry.lookup,
    spf: ({ ip, domain }) =>
      checkSpf({ remote_address: ip, mail_from: `postmaster@${domain}`, helo: hostname }, inquiry, hostname),
    dmarc: (domain) => discoverDmarc(domain, inquiry.lookup),
    close: () => inquiry.close(),
  }
}
