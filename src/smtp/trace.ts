import { domainNameOf } from '../core/domain-names.ts'
import { isIPv6 } from 'node:net'
import { headerLimit } from '../message/headers.ts'
import type { Envelope } from '../mail/model.ts'

interface Trace {
  envelope: Envelope
  /** Our host name: the `by` of Received. */
  hostname: string
  /** The queue id in the reply to the client. */
  id: string
  /** Milliseconds since the Unix epoch. */
  received_at: number
  /** The recipient of this copy. */
  recipient: string
  /** The value of our Authentication-Results field, without the field name. It is folded again here. */
  authentication_results: string
}

/**
 * The fields that are prepended to a message at final delivery (RFC 5321 4.4, RFC 8601): lines with CRLF, folded at 78
 * characters where a space allows.
 */
export function traceHeader({ envelope, hostname, id, received_at, recipient, authentication_results }: Trace): string {
  return [
    fold(`Return-Path: <${visible(envelope.mail_from)}>`),
    fold(`Authentication-Results: ${unfold(authentication_results)}`),
    [
      fold(`Received: from ${clientName(envelope.helo)} (${literal(envelope.remote_address)})`),
      ...(envelope.tls ? [fold(`(using ${token(envelope.tls.version)} with cipher ${token(envelope.tls.cipher)})`, '\t')] : []),
      fold(`by ${token(hostname)} with ${protocolOf(envelope)} id ${token(id)}`, '\t'),
      fold(`for <${visible(recipient)}>;`, '\t'),
      `\t${new Date(received_at).toUTCString().replace('GMT', '+0000')}`,
    ].join('\r\n'),
    '',
  ].join('\r\n')
}

/**
 * The message with the trace fields prepended. Return-Path fields, and Authentication-Results fields with our authserv-id (RFC 8601 5), are
 * removed from the header as far as it is read. Every other byte stays.
 */
export function withTrace(raw: Buffer, trace: string, hostname: string): Buffer {
  const header = headerText(raw)
  const kept: Buffer[] = [Buffer.from(trace)]
  let at = 0
  for (const { index: start } of header.matchAll(
    /(?<![^\n])(?:authentication-results|return-path)(?:[ \t]|\r?\n(?=[ \t]))*:/gi,
  )) {
    const end = fieldEnd(header, start)
    // a field that continues beyond the limit is left as it is
    if (end === header.length && headerLength(raw) === Infinity) break
    if (!isForged(header.slice(start, end), hostname)) continue
    kept.push(raw.subarray(at, start))
    at = end
  }
  return Buffer.concat([...kept, raw.subarray(at)])
}

/** Bytes of the header section, without the empty line that ends it. The whole message if there is none; Infinity above the limit. */
export function headerLength(raw: Buffer): number {
  if (raw[0] === 13 && raw[1] === 10) return 0
  const end = raw.subarray(0, headerLimit + 2).indexOf(emptyLine)
  if (end !== -1) return end + 2
  return raw.length <= headerLimit ? raw.length : Infinity
}

/** The header section, one character for each byte, as far as it is read. */
export function headerText(raw: Buffer): string {
  return raw.toString('latin1', 0, Math.min(headerLength(raw), headerLimit))
}

/** The number of Received fields (RFC 5321 6.3). */
export function receivedHops(raw: Buffer): number {
  return headerText(raw).match(/^received[ \t]*:/gim)?.length ?? 0
}

const emptyLine = Buffer.from('\r\n\r\n')

/** RFC 3848 and RFC 6531 4.3; a client that sent HELO uses plain SMTP. */
function protocolOf(envelope: Envelope): string {
  const secure = envelope.tls ? 'S' : ''
  if (envelope.smtputf8) return `UTF8SMTP${secure}`
  return envelope.esmtp === false ? 'SMTP' : `ESMTP${secure}`
}

/** The HELO name of the client if it is a domain or an address literal, else `unknown`. */
function clientName(helo: string): string {
  if (/^\[[0-9a-f.:]+\]$/i.test(helo) || /^\[IPv6:[0-9a-f.:]+\]$/i.test(helo)) return helo
  return domainNameOf(helo) ?? (/^[0-9.]{7,15}$/.test(helo) ? helo : 'unknown')
}

function literal(address: string): string {
  return isIPv6(address) ? `[IPv6:${address}]` : `[${token(address)}]`
}

function token(text: string): string {
  return text.replaceAll(/[^\w.:+=@-]/g, '?').slice(0, 255)
}

/** An address fit for a header field. It was already checked at MAIL or RCPT; the check is repeated here for safety. */
function visible(address: string): string {
  return address.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}<>]/gu, '?').slice(0, 320)
}

function unfold(value: string): string {
  return value
    .replaceAll(/\s+/g, (space) => (/[\r\n]/.test(space) ? ' ' : space))
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
    .trim()
}

/** Folds before spaces, at 78 characters where words allow, and always below the 998 of RFC 5322. */
function fold(text: string, indent = ''): string {
  if (indent.length + text.length <= 78 && /^\S/.test(text)) return indent + text
  let folded = ''
  let line = indent
  let isEmpty = true
  for (const word of wordsOf(text)) {
    if (isEmpty) line += word
    else if (line.length + 1 + word.length <= 78) line += ` ${word}`
    else {
      folded += `${line}\r\n`
      line = `\t${word}`
      isEmpty = true
    }
    isEmpty &&= word.trim() === ''
  }
  return folded + line
}

/** The words between spaces. Overlong words are split into pieces of at most 900 bytes. */
function wordsOf(text: string): string[] {
  const words = text.split(' ')
  if (words.every((word) => word.length < 225)) return words
  return words.flatMap((word) => (Buffer.byteLength(word) <= 900 ? [word] : (word.match(/.{1,225}/gsu) ?? [])))
}

/** The end of the field that begins at `start`, including continuation lines. */
function fieldEnd(header: string, start: number): number {
  for (let feed = header.indexOf('\n', start); feed !== -1; feed = header.indexOf('\n', feed + 1)) {
    if (header[feed + 1] !== ' ' && header[feed + 1] !== '\t') return feed + 1
  }
  return header.length
}

function isForged(field: string, hostname: string): boolean {
  const colon = field.indexOf(':')
  const name = field.slice(0, Math.max(0, colon)).trimEnd().toLowerCase()
  if (name === 'return-path') return true
  if (name !== 'authentication-results') return false
  const value = field.slice(colon + 1)
  const claimed = authservId(value)
  const ours = hostname.toLowerCase()
  // Other software may read an unparsable authserv-id as ours.
  return claimed === null ? value.toLowerCase().includes(ours) : claimed === ours
}

/** The authserv-id of a field value: a token or a quoted string after any comments; null when it cannot be parsed. */
function authservId(value: string): string | null {
  const text = withoutLeadingComments(value)
  if (text === null) return null
  const quoted = /^"((?:[^"\\]|\\.)*)"/s.exec(text)?.[1]
  const name = quoted?.replaceAll(/\\(.)/gs, '$1') ?? /^[^\s;()"<>,]+/.exec(text)?.[0]
  if (name === undefined || name === '') return null
  return domainNameOf(Buffer.from(name, 'latin1').toString().trim().replace(/\.$/, '')) ?? null
}

/** Skips comments, which nest and hold quoted pairs (RFC 5322 3.2.2). Null when one does not end. */
function withoutLeadingComments(value: string): string | null {
  let at = 0
  let depth = 0
  for (; at < value.length; at++) {
    const character = value[at] ?? ''
    if (depth > 0 && character === '\\') at++
    else if (character === '(') depth++
    else if (depth > 0 && character === ')') depth--
    else if (depth === 0 && !/\s/.test(character)) break
  }
  return depth > 0 ? null : value.slice(at)
}

/** True if a Delivered-To field shows that the message was already delivered to one of these addresses (RFC 9228). */
export function deliveredBefore(raw: Buffer, recipients: string[]): boolean {
  const header = Buffer.from(headerText(raw), 'latin1').toString()
  const addresses = new Set(recipients.map((recipient) => recipient.toLowerCase()))
  return [...header.matchAll(deliveredTo)].some(([, value = '']) => addresses.has(bare(value)))
}

const deliveredTo = /^delivered-to[ \t]*:([^\r\n]*(?:\r\n[ \t][^\r\n]*)*)/gim

function bare(value: string): string {
  const text = value.trim().toLowerCase()
  return text.startsWith('<') && text.endsWith('>') ? text.slice(1, -1).trim() : text
}
