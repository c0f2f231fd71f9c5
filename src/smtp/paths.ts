import { domainNameOf, isLiteral } from '../core/domain-names.ts'
import { Refusal } from './replies.ts'

/** The longest address, in octets (RFC 5321 4.5.3.1.3 less the angle brackets). */
const longestAddress = 254

/** The longest local part, in octets (RFC 5321 4.5.3.1.1). */
const longestLocal = 64

/**
 * The address of a RCPT command in its lookup form: lower-case A-label domain, no needless quotes. Throws a `Refusal` for what cannot be a
 * local mailbox: source routes (`%`, `!`), address literals, invisible characters, and non-ASCII without SMTPUTF8 (RFC 6531).
 */
export function recipientOf(path: string, smtputf8: boolean): string {
  if (path.toLowerCase() === 'postmaster') return 'postmaster'
  const { local, domain } = splitAddress(path)
  checkCharset(path, smtputf8)
  if (/[%!]/.test(local) || domain.startsWith('[')) throw new Refusal(550, '5.7.1', 'Relaying denied')
  const mailbox = `${unquoted(local)}@${domainNameOf(domain) ?? ''}`
  if (!dotAtomAtDomain.test(mailbox) || invisible.test(mailbox) || tooLong(mailbox)) {
    throw new Refusal(550, '5.1.3', 'Invalid mailbox address')
  }
  return mailbox
}

/**
 * The address of a RCPT command of an authenticated client, who may write to any domain. Same form; bare `postmaster` stays. Throws a `Refusal`
 * for address literals, names without a dot, and addresses that other servers would refuse.
 */
export function destinationOf(path: string, smtputf8: boolean): string {
  if (path.toLowerCase() === 'postmaster') return 'postmaster'
  const { local, domain } = splitAddress(path)
  checkCharset(path, smtputf8)
  const mailbox = `${unquoted(local)}@${domainNameOf(domain) ?? ''}`
  const fits =
    dotAtomAtDomain.test(mailbox) && !invisible.test(mailbox) && !tooLong(mailbox) && Buffer.byteLength(local) <= longestLocal
  if (!fits || !mailbox.includes('.', mailbox.lastIndexOf('@')))
    throw new Refusal(553, '5.1.3', 'Not an address such as ada@example.com')
  return mailbox
}

/**
 * The address of a MAIL command, empty for the null sender. The domain is in lower-case A-labels, or an address literal. Local parts that
 * RFC 5321 forbids but that are in use (`a..b`, `c.`) are accepted.
 */
export function senderOf(path: string, smtputf8: boolean): string {
  if (path === '') return ''
  const { local, domain } = splitAddress(path)
  checkCharset(path, smtputf8)
  const host = isLiteral(domain) ? domain : domainNameOf(domain)
  const mailbox = `${unquoted(local)}@${host ?? ''}`
  if (host === undefined || !sendingLocal.test(unquoted(local)) || invisible.test(mailbox) || tooLong(mailbox)) {
    throw new Refusal(553, '5.1.7', 'Invalid sender address')
  }
  return mailbox
}

/* oxlint-disable no-underscore-dangle -- the library's own names */
/** The parser of smtp-server. */
interface Reader {
  _parseAddressCommand(name: string, command: string | Buffer): { address: string } | false
}

/**
 * Keeps the A-labels of an address that was written in ASCII. The library decodes them to Unicode, and the address would then seem to
 * need SMTPUTF8 (RFC 6531).
 */
export function preserveALabels(reader: Reader): void {
  const read = reader._parseAddressCommand.bind(reader)
  reader._parseAddressCommand = (name, command) => {
    const path = read(name, command)
    if (!path || nonAscii.test(command.toString())) return path
    // The domain is kept as written: several Unicode spellings map to one ASCII name.
    const domain = /:\s*<[^<>\s]*@([^<>@\s]*)>/.exec(command.toString())?.[1]
    if (domain !== undefined && nonAscii.test(path.address)) path.address = withDomain(path.address, domain)
    return path
  }
}

const nonAscii = /[^\0-\x7f]/
// Controls, format characters (zero width, bidi), lone surrogates, private use, unassigned, separators, and the replacement for broken UTF-8.
const invisible = /[\p{C}\p{Z}\ufffd]/u
const atom = String.raw`[\w!#$%&'*+/=?^\x60{|}~\u{80}-\u{10ffff}-]+`
const dotAtom = new RegExp(String.raw`^${atom}(?:\.${atom})*$`, 'u')
const dotAtomAtDomain = new RegExp(String.raw`^${atom}(?:\.${atom})*@[^@]+$`, 'u')
const sendingLocal = /^(?:[^\s"\\<>@()]+|"(?:[^"\\]|\\.)*")$/u

function splitAddress(path: string): { local: string; domain: string } {
  const at = path.lastIndexOf('@')
  return { local: path.slice(0, Math.max(0, at)), domain: path.slice(at + 1) }
}

/** Throws Refusal for a path that is not ASCII where the client did not announce SMTPUTF8 (RFC 6531 3.4). */
function checkCharset(path: string, smtputf8: boolean): void {
  if (!smtputf8 && nonAscii.test(path)) throw new Refusal(553, '5.6.7', 'This address needs SMTPUTF8')
}

/** Removes needless quotes: `"a.b"` and `a.b` are one mailbox (RFC 5321 4.1.2). */
function unquoted(local: string): string {
  if (!local.startsWith('"')) return local
  const inside = /^"((?:[^"\\]|\\.)*)"$/u.exec(local)?.[1]?.replaceAll(/\\(.)/gu, '$1')
  return inside !== undefined && dotAtom.test(inside) ? inside : local
}

function tooLong(mailbox: string): boolean {
  return mailbox.length > longestAddress || Buffer.byteLength(mailbox) > longestAddress
}

function withDomain(address: string, domain: string): string {
  return address.slice(0, address.lastIndexOf('@') + 1) + domain
}
