import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

/** The addresses of a name, in the order to try them. Throws when there are none. */
export type Resolve = (host: string) => Promise<string[]>

/** Asks these name servers, or the system (its hosts file first) when none are given. `timeout` is for one answer, in milliseconds. */
export function resolver({ servers, timeout }: { servers: readonly string[]; timeout: number }): Resolve {
  if (servers.length === 0) return system
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
    return found.filter((address) => isIP(address) > 0)
  }
}

async function system(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true, order: 'ipv4first' })
  return found.map(({ address }) => address)
}
