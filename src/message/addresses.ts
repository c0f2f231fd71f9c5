import addressparser from 'nodemailer/lib/addressparser'
import { domainNameOf, isLiteral } from '../core/domain-names.ts'
import type { Address } from '../mail/model.ts'
import { hasDirectionControls, displayLine, upToLength } from '../core/text.ts'

const maxMailboxes = 1000

/** Characters that are read of all address fields of one name; about a thousand mailboxes. */
export const longestList = 64 * 1024

/** The longest address that is read, in octets; SMTP delivers to none beyond 254 (RFC 5321 4.5.3.1.3). */
export const longestAddress = 1000

/** Characters of a display name that are read, with encoded words decoded. */
const longestName = 1000

/**
 * The mailboxes of address fields (RFC 5322 3.4), groups flattened: at most 1000, of the first 64 Ki characters. Entries without `local@domain`, or
 * with a longer address than `longestAddress`, are left out; of a name the first 1000 characters are kept. The domain is normalized by
 * `domainOf`. An encoded word is a name and never an address (RFC 2047 5); `decode` decodes names.
 */
export function mailboxes(values: readonly string[], decode: (words: string) => string = (words) => words): Address[] {
  const found: Address[] = []
  let remaining = longestList
  for (const value of values.slice(0, maxMailboxes)) {
    for (const { address, name } of addressparser(upTo(remaining, value), { flatten: true })) {
      const clean = addressOf(address)
      if (clean !== undefined && found.length < maxMailboxes) found.push({ address: clean, name: nameOf(name, decode) })
    }
    remaining -= value.length
    if (remaining <= 0) break
  }
  return found
}

/** The mailboxes of one address field as written, groups flattened. An unparsable entry has an empty address. A field that is too long has none. */
export function entriesOf(value: string): Address[] {
  if (value.length > longestList) return []
  return addressparser(value, { flatten: true }).map(({ address, name }) => ({ address, name }))
}

/** The domain of an address in lower-case A-labels, or its address literal in lower case; undefined when it is neither. */
export function domainOf(address: string): string | undefined {
  const text = address.slice(address.lastIndexOf('@') + 1).replace(/\.$/, '')
  return isLiteral(text) ? text.toLowerCase() : domainNameOf(text)
}

/** The field truncated to `length` characters, at a comma. */
export function upTo(length: number, value: string): string {
  return value.length <= length ? value : value.slice(0, Math.max(0, value.lastIndexOf(',', length)))
}

function addressOf(address: string): string | undefined {
  const at = address.lastIndexOf('@')
  if (at < 1 || at === address.length - 1 || address.includes('=?') || /[\s<>]/.test(address) || hasDirectionControls(address))
    return undefined
  const domain = domainOf(address)
  if (domain === undefined) return undefined
  const whole = `${address.slice(0, at)}@${domain}`
  return Buffer.byteLength(whole) > longestAddress ? undefined : whole
}

function nameOf(name: string, decode: (words: string) => string): string {
  const decoded = name.includes('=?') ? decode(name) : name
  return displayLine(upToLength(decoded, longestName))
}
