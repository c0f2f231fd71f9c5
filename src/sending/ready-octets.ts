import { randomUUID } from 'node:crypto'
import { invalid } from '../core/fault.ts'

/** The longest line of a message in octets, without its end (RFC 5322 2.1.1). */
const longestLine = 998

const cr = 0x0d
const lf = 0x0a

/**
 * A message that was composed elsewhere, fit to be signed and sent: every line end CRLF, no Bcc and no Return-Path, with Date and Message-ID
 * (RFC 6409 8). Throws Fault invalid_request for a line that is too long, or a NUL.
 */
export function readyOctets(raw: Buffer, { now, domain }: { now: number; domain: string }): Buffer {
  const octets = withLineEnds(raw)
  if (octets.includes(0)) throw invalid('raw', 'The message holds a NUL.')
  if (hasLongLine(octets)) throw invalid('raw', `The message has a line of more than ${longestLine} octets.`, 'line_too_long')
  const end = octets.indexOf('\r\n\r\n')
  const header = (end < 0 ? octets : octets.subarray(0, end + 2)).toString('latin1')
  const fields = header.split(/(?<=\r\n)(?![ \t])/)
  const kept = fields.filter((field) => !/^(?:bcc|resent-bcc|return-path)[ \t]*:/i.test(field))
  const has = (name: string): boolean => kept.some((field) => field.slice(0, field.indexOf(':')).trimEnd().toLowerCase() === name)
  if (!has('date')) kept.unshift(`Date: ${headerDate(now)}\r\n`)
  if (!has('message-id')) kept.unshift(`Message-ID: ${freshMessageId(domain)}\r\n`)
  return Buffer.concat([Buffer.from(kept.join(''), 'latin1'), octets.subarray(header.length)])
}

/** `Fri, 20 Nov 2026 10:05:00 +0000` (RFC 5322 3.3). */
export function headerDate(time: number): string {
  return new Date(time).toUTCString().replace('GMT', '+0000')
}

export function freshMessageId(domain: string): string {
  return `<${randomUUID()}@${domain}>`
}

/**
 * The octets with CRLF for every CR, LF and CRLF. By hand, octet by octet: replacing in a text of nothing but line ends takes a hundred times its
 * memory, and seconds.
 */
export function withLineEnds(raw: Buffer): Buffer {
  let bare = 0
  for (let at = 0; at < raw.length; at += 1) {
    if (raw[at] === cr ? raw[at + 1] !== lf : raw[at] === lf && raw[at - 1] !== cr) bare += 1
  }
  if (bare === 0) return raw
  const octets = Buffer.allocUnsafe(raw.length + bare)
  let length = 0
  for (let at = 0; at < raw.length; at += 1) {
    const octet = raw[at]!
    if (octet === lf && raw[at - 1] !== cr) octets[length++] = cr
    octets[length++] = octet
    if (octet === cr && raw[at + 1] !== lf) octets[length++] = lf
  }
  return octets
}

/** Whether a line is longer than may be sent; line ends are CRLF. */
export function hasLongLine(octets: Buffer): boolean {
  for (let at = 0; at < octets.length;) {
    const next = octets.indexOf(0x0a, at)
    const end = next < 0 ? octets.length : next - 1
    if (end - at > longestLine) return true
    if (next < 0) return false
    at = next + 1
  }
  return false
}
