import type { SecureDns } from '../../net/secure-dns.ts'

/** A TLSA record (RFC 6698 2.1), as mx-connect takes it. */
export interface Tlsa {
  usage: number
  selector: number
  mtype: number
  cert: Buffer
}

/** What DANE asks of the DNS (RFC 7672): only answers that DNSSEC vouches for count. */
export class Dane {
  readonly #dns: SecureDns

  constructor(dns: SecureDns) {
    this.#dns = dns
  }

  /** The questions of one attempt to deliver to a domain. */
  of(domain: string): DaneQuestions {
    let exchanges: Promise<boolean> | undefined
    const found = new Map<string, Tlsa[]>()
    return {
      found,
      checkDnssecSecure: async (host) => {
        // RFC 7672 2.2.1: an exchange that anybody may have put there is not worth checking
        exchanges ??= this.#dns.ask(domain, 'MX').then(({ secure }) => secure)
        if (!(await exchanges)) return { secure: false }
        const addresses = await Promise.all([this.#dns.ask(host, 'A'), this.#dns.ask(host, 'AAAA')])
        return { secure: addresses.every(({ secure }) => secure) }
      },
      resolveTlsa: async (name) => {
        const answer = await this.#dns.ask(name, 'TLSA')
        if (!answer.secure) return []
        const records = answer.found
          .filter(({ length }) => length > 3)
          .map(tlsa)
          .filter(usable)
        found.set(name, records)
        return records
      },
    }
  }
}

/** As mx-connect asks them. */
export interface DaneQuestions {
  checkDnssecSecure: (host: string) => Promise<{ secure: boolean }>
  resolveTlsa: (name: string) => Promise<Tlsa[]>
  /** What was found, by name. */
  found: ReadonlyMap<string, Tlsa[]>
}

function tlsa(content: Buffer): Tlsa {
  return { usage: content[0]!, selector: content[1]!, mtype: content[2]!, cert: content.subarray(3) }
}

/** RFC 7672 3.1.3: the usages of public authorities mean nothing between mail servers. */
function usable({ usage, selector, mtype }: Tlsa): boolean {
  return (usage === 2 || usage === 3) && selector <= 1 && mtype <= 2
}
