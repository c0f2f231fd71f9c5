import { isIP } from 'node:net'
import { percentDecoded } from '../core/text.ts'
import { isAbsent } from '../net/resolve.ts'
import type { FreshInquiry } from '../mailauth/inquire.ts'
import type { Kind } from './days.ts'

export interface ReportDestination {
  /** An address, or an https URL (RFC 8460 3). */
  to: string
  /** The largest message it accepts, in bytes. */
  limit: number
  /** True if the owner of its domain agreed to reports on the other domain. */
  agreed: boolean
}

/** The most destinations of one domain; others are ignored (RFC 9990 3.5). */
const maxDestinations = 5

/** The largest message sent to any destination, in bytes. */
const largest = 10 * 1024 * 1024

/** The report destinations of a domain; empty when it publishes none. Throws when the DNS gives no clear answer. */
export async function destinationsOf(kind: Kind, domain: string, inquiry: FreshInquiry): Promise<ReportDestination[]> {
  return kind === 'dmarc' ? dmarcDestinations(domain, inquiry) : tlsDestinations(domain, inquiry)
}

async function dmarcDestinations(domain: string, inquiry: FreshInquiry): Promise<ReportDestination[]> {
  const { record, found_at, organizational } = await inquiry.dmarc(domain)
  // the policy of another domain has applied since
  if (record === null || found_at !== domain) return []
  const found: ReportDestination[] = []
  for (const destination of destinationsIn(ruaOf(record), false)) {
    const host = hostOf(destination)
    const isOwn = host === domain || (organizational !== null && (await inquiry.dmarc(host)).organizational === organizational)
    if (isOwn) found.push(destination)
    else found.push(...(await allowed(domain, destination, inquiry)))
  }
  return found
}

/** The authorization of another domain for reports on this one (RFC 9990 4): none, given, or given for other addresses. */
async function allowed(domain: string, destination: ReportDestination, inquiry: FreshInquiry): Promise<ReportDestination[]> {
  const host = hostOf(destination)
  const records = (await textsAt(`${domain}._report._dmarc.${host}`, inquiry)).filter((text) =>
    /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text),
  )
  if (records.length === 0) return []
  const rua = records.map((record) => ruaOf(record)).find((value) => value !== '')
  if (rua === undefined) return [{ ...destination, agreed: true }]
  const others = destinationsIn(rua, false).map((other) => ({ ...other, agreed: true }))
  return others.every((other) => hostOf(other) === host) ? others.slice(0, 1) : []
}

async function tlsDestinations(domain: string, inquiry: FreshInquiry): Promise<ReportDestination[]> {
  const texts = await textsAt(`_smtp._tls.${domain}`, inquiry)
  const [only, ...more] = texts.filter((text) => /^v=TLSRPTv1\s*(?:;|$)/.test(text))
  return only === undefined || more.length > 0 ? [] : destinationsIn(ruaOf(only), true)
}

async function textsAt(name: string, { lookup }: FreshInquiry): Promise<string[]> {
  if (name.length > 253) return []
  try {
    return ((await lookup(name, 'TXT')) as string[][]).map((strings) => strings.join(''))
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
}

function ruaOf(record: string): string {
  const tags = record.split(';').map((tag) => /^\s*([a-z]+)\s*=(.*)/s.exec(tag))
  return tags.find((tag) => tag?.[1] === 'rua')?.[2]?.trim() ?? ''
}

/** The first valid URIs of a list, without duplicates. */
function destinationsIn(list: string, https: boolean): ReportDestination[] {
  const found = new Map<string, ReportDestination>()
  for (const text of list.slice(0, 4096).split(',')) {
    const destination = mailtoOf(text.trim()) ?? (https ? urlOf(text.trim()) : undefined)
    if (destination && found.size < maxDestinations && !found.has(destination.to)) found.set(destination.to, destination)
  }
  return [...found.values()]
}

const units: Record<string, number> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 }

/** `mailto:dmarc@example.com!10m`: the limit is RFC 7489 6.2's, and still published. */
function mailtoOf(text: string): ReportDestination | undefined {
  const [, encoded, number, unit = ''] = /^mailto:([^!?\s]{3,320})(?:\?[^!]*)?(?:!(\d{1,12})([kmgt])?)?$/i.exec(text) ?? []
  if (encoded === undefined) return undefined
  const address = percentDecoded(encoded) ?? ''
  if (!/^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(address)) return undefined
  const at = address.lastIndexOf('@')
  const to = `${address.slice(0, at)}@${address.slice(at + 1).toLowerCase()}`
  const limit = number === undefined ? largest : Number(number) * units[unit.toLowerCase()]!
  return to.length <= 254 && isIP(to.slice(at + 1)) === 0 ? { to, limit: Math.min(limit, largest), agreed: false } : undefined
}

function urlOf(text: string): ReportDestination | undefined {
  const url = text.length <= 2000 && /^https:\/\/[^\s!]+$/i.test(text) ? URL.parse(text) : null
  return url && url.username === '' && url.password === '' ? { to: url.href, limit: largest, agreed: false } : undefined
}

/** The domain of an address, the host of a URL. */
export function hostOf({ to }: Pick<ReportDestination, 'to'>): string {
  return to.startsWith('https://') ? new URL(to).hostname : to.slice(to.lastIndexOf('@') + 1)
}
