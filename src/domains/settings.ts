import type { DnsSettings } from '../net/dns.ts'

/** What of the settings domains go by. */
export interface DomainSettings {
  /** What MX records point to. */
  hostname: string
  /** Whom `mta-sts.` of a domain leads to: where the API is served. */
  policy_host: string
  mta_sts: 'none' | 'testing' | 'enforce'
  /** Whether mail leaves from our own addresses, so that SPF must let them. */
  direct: boolean
  ipv6: boolean
  dns: DnsSettings
}
