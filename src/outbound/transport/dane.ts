import type { SecureDns } from '../../net/secure-dns.ts'
import type { Tlsa } from '../../net/tls-worker.ts'

/** The DNS queries of DANE (RFC 7672); only answers validated by DNSSEC count. */
export class Dane {
  readonly #dns: SecureDns

  constructor(dns: SecureDns) {
    this.#dns = dns
  }

  /** The queries of one attempt to deliver to a domain. */
  of(domain: string): DaneQueries {
    let exchanges: Promise<boolean> | undefined
    return {
      checkDnssecSecure: async (host) => {
        // RFC 7672 2.2.1: TLSA records of an insecure MX are not used
        exchanges ??= this.#dns.ask(domain, 'MX').then(({ secure }) => secure)
        if (!(await exchanges)) return { secure: false }
        const addresses = await Promise.all([this.#dns.ask(host, 'A'), this.#dns.ask(host, 'AAAA')])
        return { secure: addresses.every(({ secure }) => secure) }
      },
      resolveTlsa: async (name) => {
        const answer = await this.#dns.ask(name, 'TLSA')
        if (!answer.secure) return []
        return answer.found.filter(({ length }) => length >= 3).map(tlsa)
      },
    }
  }
}

/** The interface of mx-connect. */
export interface DaneQueries {
  checkDnssecSecure: (host: string) => Promise<{ secure: boolean }>
  /** All records, usable or not. */
  resolveTlsa: (name: string) => Promise<Tlsa[]>
}

function tlsa(content: Buffer): Tlsa {
  return { usage: content[0]!, selector: content[1]!, mtype: content[2]!, cert: content.subarray(3) }
}

/** True if a record can be matched. RFC 7672 3.1.3: the usages of public CAs are not used between mail servers. */
export function isUsable({ usage, selector, mtype, cert }: Tlsa): boolean {
  return (usage === 2 || usage === 3) && selector <= 1 && mtype <= 2 && cert.length > 0
}
