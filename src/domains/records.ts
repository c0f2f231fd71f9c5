import type { PublicKey } from './types.ts'
import type { DnsRecord } from './model.ts'
import { createHash } from 'node:crypto'
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

/** An expected DNS record. */
export interface WantedRecord extends Pick<DnsRecord, 'purpose' | 'required' | 'type' | 'name' | 'value' | 'ttl'> {
  priority?: number
  /** Set for DKIM records. */
  key?: PublicKey
}

const ttl = 3600

/** The key that identifies a record of a domain. */
export function keyOf({ type, name }: Pick<WantedRecord, 'type' | 'name'>): string {
  return `${type} ${name}`
}

/** The expected DNS records of a domain; it is verified when all required ones are correct. */
export function recordsOf(domain: string, keys: readonly PublicKey[], settings: DomainSettings): WantedRecord[] {
  const text = (purpose: WantedRecord['purpose'], required: boolean, name: string, value: string): WantedRecord => ({
    purpose,
    required,
    type: 'TXT',
    name,
    value,
    ttl,
  })
  const hint = (purpose: WantedRecord['purpose'], label: string, value: string): WantedRecord =>
    text(purpose, false, `${label}.${domain}`, value)
  return [
    { purpose: 'mx', required: true, type: 'MX', name: domain, value: settings.hostname, priority: 10, ttl },
    text('spf', true, domain, 'v=spf1 mx ~all'),
    ...keys.map((key) => ({
      ...text('dkim', key.state === 'active', `${key.selector}._domainkey.${domain}`, dkimText(key)),
      key,
    })),
    hint('dmarc', '_dmarc', `v=DMARC1; p=none; rua=mailto:dmarc@${domain}`),
    ...(settings.mta_sts === 'none'
      ? []
      : [
          hint('mta_sts', '_mta-sts', `v=STSv1; id=${policyId(settings)}`),
          { ...hint('mta_sts', 'mta-sts', settings.policy_host), type: 'CNAME' as const },
        ]),
    hint('tls_rpt', '_smtp._tls', `v=TLSRPTv1; rua=mailto:tlsrpt@${domain}`),
  ]
}

function dkimText({ algorithm, public_text }: PublicKey): string {
  return `v=DKIM1; h=sha256; k=${algorithm === 'rsa-sha256' ? 'rsa' : 'ed25519'}; p=${public_text}`
}

const day = 86_400

/** The MTA-STS policy of hosted domains (RFC 8461 3.2). */
export function policyText({ hostname, mta_sts }: DomainSettings): string {
  // a policy in testing or being withdrawn must not be cached for long
  const age = mta_sts === 'enforce' ? 14 * day : day
  return ['version: STSv1', `mode: ${mta_sts}`, `mx: ${hostname}`, `max_age: ${age}`, ''].join('\r\n')
}

/** The `id` of the TXT record: it changes with the policy (RFC 8461 3.1). */
function policyId(settings: DomainSettings): string {
  return createHash('sha256').update(policyText(settings)).digest('hex').slice(0, 20)
}
