import addressparser from 'nodemailer/lib/addressparser'
import { domainNameOf, isLiteral } from '../core/domain-names.ts'
import type { Address } from '../mail/model.ts'
import { isTurned, shownLine } from './shown-line.ts'

const most = 1000

/** Characters of the address fields of one name that are read: as many as a thousand mailboxes have. */
export const longestList = 64 * 1024

/**
 * The mailboxes of address fields (RFC 5322 3.4), groups flattened, at most 1000, of the first 64 Ki characters; what has no `local@domain` is left out.
 * The domain is as `domainOf` has it. An encoded word is a name and never an address (RFC 2047 5);
 * `decode` reads the names.
 */
export function mailboxes(values: readonly string[], decode: (words: string) => string = (words) => words): Address[] {
  const found: Address[] = []
  let left = longestList
  for (const value of values.slice(0, most)) {
    for (const { address, name } of addressparser(upTo(left, value), { flatten: true })) {
      const clean = addressOf(address)
      if (clean !== undefined && found.length < most) found.push({ address: clean, name: nameOf(name, decode) })
    }
    left -= value.length
    if (left <= 0) break
  }
  return found
}

/** The mailboxes of one address field as they are written, groups flattened; the address of one that cannot be read is empty. None of one that is too long. */
export function entriesOf(value: string): Address[] {
  if (value.length > longestList) return []
  return addressparser(value, { flatten: true }).map(({ address, name }) => ({ address, name }))
}

/** The domain of an address as the DNS has it, or its address literal in lower case; undefined for what is neither. */
export function domainOf(address: string): string | undefined {
  const text = address.slice(address.lastIndexOf('@') + 1).replace(/\.$/, '')
  return isLiteral(text) ? text.toLowerCase() : domainNameOf(text)
}

/** The field as far as it is read, up to a comma. */
export function upTo(length: number, value: string): string {
  return value.length <= length ? value : value.slice(0, Math.max(0, value.lastIndexOf(',', length)))
}

function addressOf(address: string): string | undefined {
  const at = address.lastIndexOf('@')
  if (at < 1 || at === address.length - 1 || address.includes('=?') || /[\s<>]/.test(address) || isTurned(address))
    return undefined
  const domain = domainOf(address)
  return domain === undefined ? undefined : `${address.slice(0, at)}@${domain}`
}

function nameOf(name: string, decode: (words: string) => string): string {
  const decoded = name.includes('=?') ? decode(name) : name
  return shownLine(decoded)
}
