import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** A set of networks in CIDR notation; a plain address is a network of one. Throws on other text. */
export class Networks {
  #ranges: Range[]

  constructor(texts: readonly string[]) {
    this.#ranges = texts.map(rangeOf)
  }

  /** False for an invalid address. An IPv4-mapped IPv6 address counts as the IPv4 address. */
  has(address: string): boolean {
    if (this.#ranges.length === 0 || !ipaddr.isValid(address)) return false
    const candidate = ipaddr.process(address)
    return this.#ranges.some(([network, bits]) => network.kind() === candidate.kind() && candidate.match(network, bits))
  }
}

/** The canonical form of an address (without zone, mapped IPv4 as IPv4), or undefined when the text is not an address. */
export function canonicalAddress(text: string): string | undefined {
  // ipaddr.js also accepts `1`, `0x7f.1` and `010.0.0.1` as IPv4, which are not canonical.
  if (isIPv4(text)) return text
  if (!text.includes(':')) return undefined
  const bare = text.replace(/%.*/s, '')
  return ipaddr.isValid(bare) ? ipaddr.process(bare).toString() : undefined
}

/** The network by which an address is counted: itself for IPv4, its /64 for IPv6, which belongs to one household or server. */
export function networkOf(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}

/** The limits of the `networksOf` of an address, as multiples of that of the narrowest, so that owning many networks gives little more. */
export const networkShares = [1, 4, 16] as const

/**
 * The networks by which an address is counted, narrowest first: itself for IPv4; for IPv6 its /64, /56 and /48, each of which one customer may
 * have.
 */
export function networksOf(address: string): string[] {
  const narrow = networkOf(address)
  if (!narrow.endsWith('::/64')) return [narrow]
  const [first = '0', second = '0', third = '0', fourth = '0'] = narrow.slice(0, -'::/64'.length).split(':')
  const site = `${first}:${second}:${third}`
  return [narrow, `${site}:${(Number.parseInt(fourth, 16) & 0xff00).toString(16)}::/56`, `${site}::/48`]
}

/**
 * The name of an address in block lists and reverse zones (RFC 5782 2.1 and 2.4, RFC 1035 3.5): the octets of an IPv4 address, or the nibbles of
 * an IPv6 address, in reverse order. Null for an invalid address.
 */
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
