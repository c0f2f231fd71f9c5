import type { DnsRecord, Domain } from './model.ts'
import { hostNameOf } from '../core/domain-names.ts'

/** The records of a domain as lines of a zone file (RFC 1035 5.1), with absolute names for use in any zone. */
export function zoneText({ name, dns_records }: Domain, hostname: string): string {
  const lines = dns_records.map((record) => {
    const comment = record.required ? '' : ' ; not required'
    return `${zoneLine(record)}${comment}`
  })
  return [
    `; DNS records of ${name} for its mail`,
    `; ${hostname} needs an A record (AAAA for IPv6) with the public address of this box.`,
    ...lines,
    '',
  ].join('\n')
}

/** One record as a line of a zone file. */
export function zoneLine(record: Pick<DnsRecord, 'name' | 'ttl' | 'type' | 'value' | 'priority'>): string {
  return `${record.name}. ${record.ttl} IN ${record.type} ${contentOf(record)}`
}

function contentOf({ type, value, priority }: Pick<DnsRecord, 'type' | 'value' | 'priority'>): string {
  if (type === 'MX') return `${priority ?? 10} ${value}.`
  return type === 'CNAME' ? `${value}.` : stringsOf(value)
}

/** One string holds 255 octets (RFC 1035 3.3); ours are ASCII. */
function stringsOf(text: string): string {
  const pieces = text.match(/[^]{1,255}/g) ?? ['']
  return pieces.map((piece) => `"${piece.replaceAll(/["\\]/g, '\\$&')}"`).join(' ')
}

/** With the longest local part it makes an address of 254 octets (RFC 5321 4.5.3.1.3). */
const longest = 189

/**
 * A domain in lower-case A-labels without a trailing dot; undefined for names that mail cannot be sent to, such as `localhost` or
 * `192.0.2.1`.
 */
export function mailDomainOf(text: string): string | undefined {
  // maps full-width letters and dots of East Asian keyboards; the API returns the resulting name
  const typed = text.trim().normalize('NFKC').replaceAll('\u3002', '.')
  const name = hostNameOf(typed.replace(/\.$/, ''))
  return name?.includes('.') && name.length <= longest ? name : undefined
}
