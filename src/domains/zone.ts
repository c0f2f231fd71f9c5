import type { DnsRecord, Domain } from './model.ts'

/** The records of a domain as lines of a zone file (RFC 1035 5.1): whole names, so that they fit into any zone. */
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
