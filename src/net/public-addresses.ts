import { canonicalAddress, Networks } from './networks.ts'

/**
 * What is not the open internet: the IANA special-purpose registries, and addresses by which clouds answer only their own machines.
 * Of IPv6 only 2000::/3 is given out, so that loopback, link-local, ULA, NAT64 (64:ff9b::/96), site-local and the IPv4-compatible forms
 * are outside already.
 */
const refused4 = new Networks([
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
const given6 = new Networks(['2000::/3'])
const refused6 = new Networks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

/** Whether anybody on the internet could mean this address by it: false for every private, local, reserved or tunnelled one. */
export function isPublic(text: string): boolean {
  const address = canonicalAddress(text)
  if (address === undefined) return false
  return address.includes(':') ? given6.has(address) && !refused6.has(address) : !refused4.has(address)
}
