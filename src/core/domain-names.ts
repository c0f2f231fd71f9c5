import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'

/** Characters of a name as the DNS has it (RFC 1035 2.3.4, less the length octets). */
const longestName = 253

/** A letter of ASCII, a digit, a hyphen, an underscore, a dot, or a character of internationalized names. */
const written = /^[\w.\u{80}-\u{10ffff}-]+$/u
const nonAscii = /[^\0-\x7f]/
/** An LDH label (RFC 5890 2.3.1), or one with underscores: host names have none, and mail comes from names that do. */
const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

/**
 * A domain name as the DNS has it: A-labels in lower case (RFC 5890 2.3.2.1), at most 253 characters, no dot at its end. Undefined for
 * anything else: an address, or a name that programs read in different ways, because UTS 46 removes or replaces characters
 * that others send to the DNS.
 */
export function domainNameOf(text: string): string | undefined {
  if (text.length > longestName || !written.test(text)) return undefined
  const labels = text.split('.').map((one) => (nonAscii.test(one) ? aLabelOf(one) : one.toLowerCase()))
  const name = labels.join('.')
  // the last label of a name is no number: that is an IPv4 address
  return name.length <= longestName && labels.every((one) => label.test(one)) && !/^\d+$/.test(labels.at(-1)!) ? name : undefined
}

/** The name of a host, of letters, digits and hyphens alone (RFC 1123 2.1), in the form of `domainNameOf`; undefined for any other text. */
export function hostNameOf(text: string): string | undefined {
  return text.includes('_') ? undefined : domainNameOf(text)
}

/** Empty unless the text is a U-label: converted to Punycode and back it stays the same but for case and normalization (NFC). */
function aLabelOf(text: string): string {
  const ascii = domainToASCII(text)
  return ascii.startsWith('xn--') && domainToUnicode(ascii) === text.normalize('NFC').toLowerCase() ? ascii : ''
}

const require = createRequire(import.meta.url)

// the public suffix list, loaded when it is first used: it takes ten milliseconds and eight megabytes, and most commands and threads never need it
const suffixes = () => require('tldts') as typeof import('tldts')

/** The registrable domain by the public suffix list, private suffixes included; the domain itself if it is a suffix. */
export function organizationOf(domain: string): string {
  return suffixes().getDomain(domain, { allowPrivateDomains: true }) ?? domain
}

/** Top-level domains that the public DNS does not have, and names within networks do: RFC 6761 6, RFC 6762 appendix G, RFC 9476, and those that ICANN keeps back. */
const privateTopLevels = new Set(
  'alt corp example home internal intranet invalid lan local localhost mail onion private test'.split(' '),
)

/** False for a name whose top-level domain is neither in the public suffix list nor one for networks of one's own. */
export function hasKnownTopLevel(domain: string): boolean {
  return suffixes().parse(domain).isIcann === true || privateTopLevels.has(domain.slice(domain.lastIndexOf('.') + 1))
}

/** True if a text is an address literal such as `[192.0.2.1]` (RFC 5321 4.1.3). */
export function isLiteral(domain: string): boolean {
  const inside = /^\[(?:IPv6:)?([^\]]+)\]$/i.exec(domain)?.[1]
  return inside !== undefined && isIP(inside) !== 0
}

/** `127.0.0.1:25`, `[::1]:25`, `:25`. */
export function formatEndpoint({ host = '', port }: { host?: string | undefined; port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
