import { canonicalAddress } from '../core/networks.ts'
import type { Networks } from '../core/networks.ts'

/**
 * Who is really calling: the peer, unless it is a trusted proxy; then the last hop of `X-Forwarded-For` that is none.
 * Hops left of that one are the caller's own words and prove nothing.
 */
export function clientAddress(peer: string | undefined, forwarded: string | undefined, trusted: Networks): string {
  let address = canonicalAddress(peer ?? '') ?? ''
  const hops = (forwarded ?? '').split(',').toReversed()
  for (const hop of hops) {
    if (!trusted.has(address)) return address
    const next = canonicalAddress(withoutPort(hop.trim()))
    if (next === undefined) return address
    address = next
  }
  return address
}

/** Some proxies write `203.0.113.7:4711` or `[2001:db8::7]:4711`. */
function withoutPort(hop: string): string {
  const bracketed = /^\[([^\]]+)\](:\d+)?$/.exec(hop)
  if (bracketed) return bracketed[1]!
  return /^[\d.]+:\d+$/.test(hop) ? hop.slice(0, hop.indexOf(':')) : hop
}
