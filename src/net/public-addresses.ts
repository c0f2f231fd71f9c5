import { canonicalAddress, Networks } from './networks.ts'

/**
 * Addresses that are not public: the IANA special-purpose registries, and metadata addresses of clouds. Of IPv6 only 2000::/3 is allocated, so
 * that loopback, link-local, ULA, NAT64 (64:ff9b::/96), site-local and IPv4-compatible addresses are excluded already.
 */
const special4 = new Networks([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
])
const global6 = new Networks(['2000::/3'])
const special6 = new Networks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

/** True if an address is public: false for private, local, reserved and tunnel addresses. */
export function isPublic(text: string): boolean {
  const address = canonicalAddress(text)
  if (address === undefined) return false
  return address.includes(':') ? global6.has(address) && !special6.has(address) : !special4.has(address)
}
