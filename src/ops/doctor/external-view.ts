import { reverseName } from '../../net/networks.ts'
import { isPublic } from '../../net/public-addresses.ts'
import type { FreshInquiry } from '../../mailauth/inquire.ts'

interface ExternalViewSettings {
  hostname: string
  ipv6: boolean
  /** The configured public addresses; by default those of the host name. */
  addresses: readonly string[]
}

/** The box's own DNS; queried anew for each check. */
export class ExternalView {
  readonly settings: ExternalViewSettings
  readonly #inquire: () => FreshInquiry

  constructor(settings: ExternalViewSettings, inquire: () => FreshInquiry) {
    this.settings = settings
    this.#inquire = inquire
  }

  /** Runs queries with a resolver that is closed afterwards. */
  async ask<Answer>(work: (lookup: Ask) => Promise<Answer>): Promise<Answer> {
    const inquiry = this.#inquire()
    try {
      return await work(asking(inquiry))
    } finally {
      inquiry.close()
    }
  }

  /** The public addresses of the box; empty for a box without any. */
  async addresses(ask: Ask): Promise<string[]> {
    const { addresses, hostname } = this.settings
    if (addresses.length > 0) return [...addresses]
    const found = await this.hosts(ask, hostname)
    return found === 'unknown' ? [] : found.filter((address) => isPublic(address))
  }

  /** The addresses of a name, with IPv6 where mail uses it. */
  async hosts(ask: Ask, name: string): Promise<string[] | 'unknown'> {
    const four = await ask(name, 'A')
    const six = this.settings.ipv6 ? await ask(name, 'AAAA') : []
    const found = [four, six].flatMap((answer) => (answer === 'unknown' ? [] : answer))
    // a missing answer does not mean that there is none
    return found.length === 0 && [four, six].includes('unknown') ? 'unknown' : found
  }

  /** The PTR names of an address (RFC 1035 3.5). */
  names(ask: Ask, address: string): Promise<string[] | 'unknown'> {
    const tree = address.includes(':') ? 'ip6.arpa' : 'in-addr.arpa'
    return ask(`${reverseName(address) ?? address}.${tree}`, 'PTR')
  }
}

/** The records of a name; empty where there is none, `unknown` where the DNS gives no answer. */
export type Ask = (name: string, type: 'A' | 'AAAA' | 'PTR' | 'TXT') => Promise<string[] | 'unknown'>

function asking({ lookup }: FreshInquiry): Ask {
  return async (name, type) => {
    try {
      const answer = await lookup(name, type)
      return answer.map((one) => (typeof one === 'string' ? one : Array.isArray(one) ? one.join('') : one.exchange))
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      return absent.has(code) ? [] : 'unknown'
    }
  }
}

const absent = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])
