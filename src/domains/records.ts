import type { PublicKey } from './keys.ts'
import type { DnsRecord } from './model.ts'
import { policyId } from './policy.ts'
import type { DomainSettings } from './settings.ts'

/** What the DNS should say in one place. */
export interface Wanted extends Pick<DnsRecord, 'purpose' | 'required' | 'type' | 'name' | 'value' | 'ttl'> {
  priority?: number
  /** Of the DKIM records. */
  key?: PublicKey
}

const ttl = 3600

/** Names one of the records of a domain. */
export function keyOf({ type, name }: Pick<Wanted, 'type' | 'name'>): string {
  return `${type} ${name}`
}

/** What the DNS should say of a domain; verified is what has all that is required. */
export function recordsOf(domain: string, keys: readonly PublicKey[], settings: DomainSettings): Wanted[] {
  const text = (purpose: Wanted['purpose'], required: boolean, name: string, value: string): Wanted => ({
    purpose,
    required,
    type: 'TXT',
    name,
    value,
    ttl,
  })
  const hint = (purpose: Wanted['purpose'], label: string, value: string): Wanted =>
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
