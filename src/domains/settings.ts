import type { DnsSettings } from '../net/dns.ts'

/** The settings that affect domains. */
export interface DomainSettings {
  /** The target of MX records. */
  hostname: string
  /** The target of `mta-sts.` of a domain: the host of the API. */
  policy_host: string
  mta_sts: 'none' | 'testing' | 'enforce'
  /** True if mail is sent from the box's own addresses, which SPF must allow. */
  direct: boolean
  ipv6: boolean
  dns: DnsSettings
}
