import { domainToASCII } from 'node:url'
import addressparser from 'nodemailer/lib/addressparser'
import type { Address } from './model.ts'

const most = 1000

/**
 * The mailboxes of address fields (RFC 5322 3.4), groups flattened, at most 1000; what has no `local@domain` is left out.
 * The domain is lower case and in its ASCII form. An encoded word is a name and never an address (RFC 2047 5);
 * `decode` reads the names.
 */
export function mailboxes(values: readonly string[], decode: (words: string) => string = (words) => words): Address[] {
  const found: Address[] = []
  for (const value of values) {
    for (const { address, name } of addressparser(value, { flatten: true })) {
      const clean = addressOf(address)
      if (clean !== undefined && found.length < most) found.push({ address: clean, name: nameOf(name, decode) })
    }
  }
  return found
}

/** The mailboxes of one address field as they are written, groups flattened; the address of one that cannot be read is empty. */
export function entriesOf(value: string): Address[] {
  return addressparser(value, { flatten: true }).map(({ address, name }) => ({ address, name }))
}

function addressOf(address: string): string | undefined {
  const at = address.lastIndexOf('@')
  if (at < 1 || at === address.length - 1 || address.includes('=?') || /[\s<>]/.test(address)) return undefined
  const domain = address.slice(at + 1).toLowerCase()
  return `${address.slice(0, at)}@${domainToASCII(domain) || domain}`
}

function nameOf(name: string, decode: (words: string) => string): string {
  const decoded = name.includes('=?') ? decode(name) : name
  return decoded.replace(/[\s\p{Cc}]+/gu, ' ').trim()
}
