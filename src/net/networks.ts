import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** A set of networks in CIDR form; a bare address is a network of one. Throws on a text that is neither. */
export class Networks {
  #ranges: Range[]

  constructor(texts: readonly string[]) {
    this.#ranges = texts.map(rangeOf)
  }

  /** False for what is no address at all. An IPv4 address mapped into IPv6 counts as the IPv4 address. */
  has(address: string): boolean {
    if (this.#ranges.length === 0 || !ipaddr.isValid(address)) return false
    const candidate = ipaddr.process(address)
    return this.#ranges.some(([network, bits]) => network.kind() === candidate.kind() && candidate.match(network, bits))
  }
}

/** The address in its one canonical spelling (zone cut, mapped IPv4 unwrapped), or undefined when the text is no address. */
export function canonicalAddress(text: string): string | undefined {
  // ipaddr.js also reads `1`, `0x7f.1` and `010.0.0.1` as IPv4; a peer is never spelled so.
  if (isIPv4(text)) return text
  if (!text.includes(':')) return undefined
  const bare = text.replace(/%.*/s, '')
  return ipaddr.isValid(bare) ? ipaddr.process(bare).toString() : undefined
}

/** Whom to count an address as: itself for IPv4, its /64 for IPv6, since one household or server has all of that. */
export function neighbourhood(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}

/** What each of the `neighbourhoods` of an address may do, in shares of what the narrowest may: who has many networks is not many callers. */
export const networkShares = [1, 4, 16] as const

/** The networks that an address counts as, narrowest first: itself for IPv4; for IPv6 its /64, /56 and /48, each of which one customer may have. */
export function neighbourhoods(address: string): string[] {
  const narrow = neighbourhood(address)
  if (!narrow.endsWith('::/64')) return [narrow]
  const [first = '0', second = '0', third = '0', fourth = '0'] = narrow.slice(0, -'::/64'.length).split(':')
  const site = `${first}:${second}:${third}`
  return [narrow, `${site}:${(Number.parseInt(fourth, 16) & 0xff00).toString(16)}::/56`, `${site}::/48`]
}

/** As lists and reverse zones name an address (RFC 5782 2.1 and 2.4, RFC 1035 3.5): the octets of an IPv4 address, the nibbles of an IPv6 address, last first; null for what is no address. */
export function reverseName(address: string): string | null {
  if (isIP(address) === 4) return address.split('.').toReversed().join('.')
  const groups = isIP(address) === 6 ? groupsOf(address) : null
  if (!groups) return null
  // An IPv4 client on a dual-stack socket (RFC 4291 2.5.5.2).
  const mapped = /^(?:0000){5}ffff(.{2})(.{2})(.{2})(.{2})$/.exec(groups)
  if (mapped)
    return mapped
      .slice(1)
      .map((octet) => Number.parseInt(octet, 16))
      .toReversed()
      .join('.')
  return groups.split('').toReversed().join('.')
}

function rangeOf(text: string): Range {
  if (text.includes('/')) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** The 32 hexadecimal digits of an IPv6 address. */
function groupsOf(address: string): string {
  const bare = address.replace(/%.*/s, '')
  const [head = '', tail = ''] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::')
  const [first, last] = [head, tail].map((part) =>
    part
      .split(':')
      .filter(Boolean)
      .map((group) => group.padStart(4, '0'))
      .join(''),
  )
  return `${first}${(last ?? '').padStart(32 - (first ?? '').length, '0')}`
}

/** What is open at once, by the networks of the addresses it came from: who has many networks has no more for that. */
export class NetworkCounts {
  readonly #open = new Map<string, number>()

  /** Counts one in, unless a network of the address has all it may: `most` of an IPv4 address or IPv6 /64, 4 times as many of a /56, 16 times of a /48. Answers whether. */
  enter(address: string, most: number): boolean {
    const networks = neighbourhoods(address)
    if (networks.some((network, index) => this.#of(network) >= most * networkShares[index]!)) return false
    for (const network of networks) this.#open.set(network, this.#of(network) + 1)
    return true
  }

  /** Counts one out that was counted in. */
  leave(address: string): void {
    for (const network of neighbourhoods(address)) {
      const left = this.#of(network) - 1
      if (left > 0) this.#open.set(network, left)
      else this.#open.delete(network)
    }
  }

  #of(network: string): number {
    return this.#open.get(network) ?? 0
  }
}
