import type { DnsAnswer, Lookup } from '../../../src/net/dns.ts'

/** What a name has in the DNS; `error` for one whose lookups fail for a time. An empty one exists without records. */
export interface Records {
  TXT?: string[][]
  A?: string[]
  AAAA?: string[]
  MX?: [preference: number, exchange: string][]
  PTR?: string[]
  CNAME?: string
  error?: true
}

/** A DNS in memory, by names in lower case. */
export type Zone = Record<string, Records>

/** Answers as Node's resolver does. */
export function lookupIn(zone: Zone): Lookup {
  const names = new Map(Object.entries(zone))
  const resolve = (name: string, type: string, depth = 0): DnsAnswer => {
    const wanted = name.toLowerCase().replace(/\.$/, '')
    if (wanted.split('.').some((label) => label === '' || label.length > 63)) throw failure('EBADNAME')
    const records = names.get(wanted)
    if (records === undefined) throw failure('ENOTFOUND')
    if (records.error === true || depth > 8) throw failure('ESERVFAIL')
    if (records.CNAME !== undefined && type !== 'CNAME') return resolve(records.CNAME, type, depth + 1)
    const found = answerOf(records, type)
    if (found === undefined || found.length === 0) throw failure('ENODATA')
    return found
  }
  return async (name, type) => resolve(name, type)
}

function answerOf(records: Records, type: string): DnsAnswer | undefined {
  if (type === 'MX') return records.MX?.map(([priority, exchange]) => ({ priority, exchange }))
  if (type === 'CNAME') return records.CNAME === undefined ? undefined : [records.CNAME]
  return type === 'TXT' || type === 'A' || type === 'AAAA' || type === 'PTR' ? records[type] : undefined
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code })
}
