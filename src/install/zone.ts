import { isPublic } from '../net/public-addresses.ts'

/** A record to publish, in the format of the API. */
export interface ZoneRecord {
  purpose: string
  required: boolean
  type: string
  name: string
  value: string
  ttl: number
}

/** The address records of the box itself. */
export function addressRecords(hostname: string, addresses: readonly string[]): ZoneRecord[] {
  return addresses.filter(isPublic).map((value) => ({
    purpose: 'address',
    required: true,
    type: value.includes(':') ? 'AAAA' : 'A',
    name: hostname,
    value,
    ttl: 3600,
  }))
}

/** The same as lines before the domain's zone (RFC 1035 5.1). */
export function wholeZone(records: readonly ZoneRecord[], zone: string): string {
  const lines = records.map(({ name, ttl, type, value }) => `${name}. ${ttl} IN ${type} ${value}`)
  return lines.length === 0 ? zone : `${zone.trimEnd()}\n${lines.join('\n')}\n`
}
