import { domainNameOf, hostNameOf } from '../../core/domain-names.ts'
import { invalid } from '../../core/fault.ts'
import type { Address } from '../../mail/model.ts'
import { maxRecipients } from '../model.ts'

export type Field = 'to' | 'cc' | 'bcc'

/** A recipient of a message, and the header field that names it. */
export interface Addressee {
  field: Field
  address: Address
}

/**
 * One recipient as a caller writes it, `ada@example.com` or `Ada <ada@example.com>`; the domain comes back as A-labels in lower case, and a
 * local part beyond ASCII is let through (RFC 6531). Throws Fault invalid_request with the parameter for anything else: lists in one text,
 * groups, address literals, quoted local parts, line breaks.
 */
export function recipientAddress(text: string, param: string): Address {
  const read = readAddress(text)
  if (typeof read === 'string') throw invalid(param, `${quoted(text)} ${read}.`)
  return read
}

/** An address that a header named, if mail can be sent to it. */
export function reachable({ address, name }: Address): Address | undefined {
  const read = readAddress(address)
  return typeof read === 'string' ? undefined : { address: read.address, name: name.replaceAll(/\p{Cc}+/gu, ' ').trim() }
}

/**
 * The recipients of a message, each once, in the order to, cc, bcc: texts of the caller, and valid addresses. Throws one Fault that names every
 * invalid text.
 */
export function addresseesOf(input: Partial<Record<Field, string | (string | Address)[] | undefined>>): Addressee[] {
  const wrong: { field: Field; why: string }[] = []
  const found = new Map<string, Addressee>()
  let count = 0
  for (const field of ['to', 'cc', 'bcc'] as const) {
    for (const given of [input[field] ?? []].flat()) {
      count += 1
      const read = typeof given === 'string' ? readAddress(given) : given
      if (typeof read === 'string') wrong.push({ field, why: `${field}: ${quoted(given as string)} ${read}` })
      else if (!found.has(keyOf(read))) found.set(keyOf(read), { field, address: read })
    }
  }
  const [first] = wrong
  if (first) throw invalid(first.field, `${wrong.map(({ why }) => why).join('; ')}.`, 'invalid_recipient')
  if (count > maxRecipients) {
    throw invalid('to', `A message can have at most ${maxRecipients} recipients; this one has ${count}.`, 'too_many_recipients')
  }
  return [...found.values()]
}

/** The domain of an address as the DNS writes it: A-labels in lower case (RFC 5890); an invalid domain is returned unchanged. */
export function domainOf(address: string): string {
  const domain = address.slice(address.lastIndexOf('@') + 1)
  return domainNameOf(domain) ?? domain.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** True if two spellings are of one mailbox, almost everywhere. */
export function sameMailbox(one: string, other: string): boolean {
  return mailboxKey(one) === mailboxKey(other)
}

/** The same for all spellings of one mailbox. */
export function mailboxKey(address: string): string {
  return `${address.slice(0, Math.max(0, address.lastIndexOf('@'))).toLowerCase()}@${domainOf(address)}`
}

/** The address, or what is wrong with it. */
function readAddress(text: string): Address | string {
  if (/\p{Cc}/u.test(text)) return 'contains a control character'
  const named = splitName(text)
  const name = unquoted(named?.name ?? '')
  const bare = named?.address ?? text.trim()
  if (name === undefined || (!named && /[<>]/.test(text))) return 'is not written as Name <address>'
  if (/[,;]/.test(bare)) return 'contains several addresses; send a list'
  const at = bare.lastIndexOf('@')
  if (at < 1) return 'is not an e-mail address such as ada@example.com'
  const local = bare.slice(0, at).normalize('NFC')
  if (!atoms.test(local) || invisible.test(local)) return 'has a local part with invalid characters'
  if (Buffer.byteLength(local) > 64) return 'has a local part of more than 64 bytes'
  const domain = hostNameOf(bare.slice(at + 1))
  if (domain === undefined || !domain.includes('.')) return 'has no domain that can receive mail'
  if (Buffer.byteLength(local) + domain.length > 253) return 'is longer than 254 bytes'
  return { address: `${local}@${domain}`, name }
}

/** `Name <address>`, or `<address>`; undefined for a text that ends otherwise. */
function splitName(text: string): Address | undefined {
  const whole = text.trim()
  const open = whole.lastIndexOf('<')
  if (open === -1 || whole.indexOf('>', open) !== whole.length - 1) return undefined
  return { name: whole.slice(0, open).trim(), address: whole.slice(open + 1, -1).trim() }
}

// RFC 5321 forbids dots at an end and consecutive dots, but they are in use
const atoms = /^[\w!#$%&'*+/=?^`{|}~.\u{80}-\u{10ffff}-]+$/u
// controls, format characters, lone surrogates, private use, unassigned, separators
const invisible = /[\p{C}\p{Z}\ufffd]/u

/** A display name, its quotes removed; undefined when they do not match, or it could be read as more than a name. */
function unquoted(name: string): string | undefined {
  const inside = /^"((?:[^"\\]|\\.)*)"$/su.exec(name)?.[1]
  if (inside !== undefined) return inside.replaceAll(/\\(.)/gsu, '$1').trim()
  return /["<>,;@]/.test(name) ? undefined : name
}

function keyOf({ address }: Address): string {
  return address.toLowerCase()
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}
