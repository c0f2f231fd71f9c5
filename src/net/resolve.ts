import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

/** The addresses of a name, in the order to try them. Throws when there are none. */
export type Resolve = (host: string) => Promise<string[]>

/** Resolves by these name servers, or by the system (hosts file first) when none are given. `timeout` of one try in milliseconds. */
export function resolver({ servers, timeout }: { servers: readonly string[]; timeout: number }): Resolve {
  if (servers.length === 0) return systemLookup
  const dns = new Resolver({ timeout, tries: 2 })
  dns.setServers(servers)
  return async (host) => {
    const name = host.replace(/\.$/, '').toLowerCase()
    // RFC 6761 6.3: these never leave the machine
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1']
    const answers = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)])
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const failure = answers.find((answer) => answer.status === 'rejected')
    if (found.length === 0) throw failure?.reason ?? new Error(`${name} has no address`)
    return bounded(found.filter((address) => isIP(address) > 0))
  }
}

/** The answers by type: addresses for A and AAAA, exchanges for MX, the strings of each record for TXT. */
export interface RecordsOf {
  A: string[]
  AAAA: string[]
  MX: { exchange: string; priority: number }[]
  TXT: string[][]
}

/** Looks up records; rejects with the errors of Node (ENOTFOUND and ENODATA mean that there is no such record). */
export type Records = <Type extends keyof RecordsOf>(name: string, type: Type) => Promise<RecordsOf[Type]>

/** Looks up records at these name servers, or at those of the system when none are given; never in a hosts file. `timeout` as for `resolver`. */
export function recordsOf({ servers, timeout }: { servers: readonly string[]; timeout: number }): Records {
  const dns = new Resolver({ timeout, tries: 2 })
  if (servers.length > 0) dns.setServers(servers)
  return async (name, type) => {
    const answer = bounded((await dns.resolve(name, type)) as RecordsOf[keyof RecordsOf])
    if (isTooLarge(answer)) throw Object.assign(new Error(`${name} has too large ${type} records`), { code: 'EBADRESP' })
    return answer as never
  }
}

type Answer = readonly string[] | readonly (readonly string[])[] | readonly { exchange: string; priority: number }[]

/**
 * The most bytes of one record, and of an answer, as `sizeOf` counts them. Keys and policies have some hundreds, and the library takes quadratic time
 * for some; no legitimate name has more.
 */
const maxRecordBytes = 8 * 1024
const maxAnswerBytes = 32 * 1024

/**
 * What a record, and a string of a TXT record, count for besides their text: an answer may have 65,000 empty strings, or
 * thousands of records of one.
 */
const recordBytes = 64
const stringBytes = 16

/** Records that are read of one answer, which may have thousands: work is done for each of them. */
const maxRecords = 50

/** The first records of an answer, for MX those of the lowest preference. TXT records are all needed, and bounded by their bytes. */
export function bounded<Found extends Answer>(answer: Found): Found {
  if (answer.length <= maxRecords) return answer
  const [first] = answer
  if (typeof first === 'string') return answer.slice(0, maxRecords) as unknown as Found
  if (Array.isArray(first)) return answer
  const exchanges = answer as readonly { exchange: string; priority: number }[]
  return exchanges.toSorted((one, other) => one.priority - other.priority).slice(0, maxRecords) as unknown as Found
}

/** True if an answer is larger than any of a legitimate name: to be checked before anything of it is kept. */
export function isTooLarge(answer: Answer): boolean {
  return sizeOf(answer) > maxAnswerBytes || answer.some((record) => sizeOfRecord(record) > maxRecordBytes)
}

/** About how many bytes an answer takes in memory. */
export function sizeOf(answer: Answer): number {
  return answer.reduce((sum: number, record) => sum + sizeOfRecord(record), 0)
}

function sizeOfRecord(record: Answer[number]): number {
  if (typeof record === 'string') return recordBytes + record.length
  if ('exchange' in record) return recordBytes + record.exchange.length
  return record.reduce((sum, text) => sum + stringBytes + text.length, recordBytes)
}

/** True if a query failed because there is no such record, or cannot be one, as opposed to a failure of the lookup. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && absences.has(error.code)
}

const absences = new Set<unknown>(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

async function systemLookup(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true, order: 'ipv4first' })
  return bounded(found.map(({ address }) => address))
}
