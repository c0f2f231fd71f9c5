import { randomUUID } from 'node:crypto'
import { invalid } from '../../core/fault.ts'
import { Turns } from '../../core/work/paced-work.ts'
import { receivedHops } from '../../smtp/trace.ts'

/** The longest line of a message in octets, without its end (RFC 5322 2.1.1). */
const longestLine = 998

const cr = 0x0d
const lf = 0x0a

/**
 * Prepares a message that was composed elsewhere for signing and sending: every line end CRLF, no Bcc and no Return-Path, with Date and Message-ID
 * (RFC 6409 8). Throws Fault invalid_request for a line that is too long, or a NUL.
 */
export async function prepareRaw(raw: Buffer, { now, domain }: { now: number; domain: string }): Promise<Buffer> {
  const octets = await withLineEnds(raw)
  if (octets.includes(0)) throw invalid('raw', 'The message contains a NUL.')
  if (hasLongLine(octets)) throw invalid('raw', `The message has a line of more than ${longestLine} bytes.`, 'line_too_long')
  const end = octets.indexOf('\r\n\r\n')
  const header = (end < 0 ? octets : octets.subarray(0, end + 2)).toString('latin1')
  const fields = header.split(/(?<=\r\n)(?![ \t])/)
  const kept = fields.filter((field) => !/^(?:bcc|resent-bcc|return-path)\s*:/i.test(field))
  const has = (name: string): boolean => kept.some((field) => field.slice(0, field.indexOf(':')).trimEnd().toLowerCase() === name)
  if (!has('date')) kept.unshift(`Date: ${headerDate(now)}\r\n`)
  if (!has('message-id')) kept.unshift(`Message-ID: ${freshMessageId(domain)}\r\n`)
  return Buffer.concat([Buffer.from(kept.join(''), 'latin1'), octets.subarray(header.length)])
}

/** Maximum hops of a message that is forwarded. */
const maxHops = 25

/** Throws Fault invalid_request, code `too_many_hops`, when a message has so many hops that forwarding it looks like a loop (RFC 5321 6.3). */
export function requireFewHops(raw: Buffer, param: string): void {
  const hops = receivedHops(raw)
  if (hops <= maxHops) return
  throw invalid(
    param,
    `The message has passed ${hops} servers, more than ${maxHops}: this is a mail loop, and it is not relayed.`,
    'too_many_hops',
  )
}

/** `Fri, 20 Nov 2026 10:05:00 +0000` (RFC 5322 3.3). */
export function headerDate(time: number): string {
  return new Date(time).toUTCString().replace('GMT', '+0000')
}

export function freshMessageId(domain: string): string {
  return `<${randomUUID()}@${domain}>`
}

/** Bytes that are processed before yielding to the event loop. */
const slice = 1024 * 1024

/**
 * The octets with CRLF for every CR, LF and CRLF; a slice at a time, yielding to other work in between. In a loop over the bytes: replacing in a text
 * of nothing but line ends takes a hundred times its memory, and seconds.
 */
export async function withLineEnds(raw: Buffer): Promise<Buffer> {
  const turns = new Turns()
  let bare = 0
  for (let at = 0; at < raw.length; at += slice) {
    bare += bareIn(raw, at, Math.min(raw.length, at + slice))
    if (turns.due) await turns.yield()
  }
  if (bare === 0) return raw
  const octets = Buffer.allocUnsafe(raw.length + bare)
  let length = 0
  for (let at = 0; at < raw.length; at += slice) {
    length = mend(raw, at, Math.min(raw.length, at + slice), octets, length)
    if (turns.due) await turns.yield()
  }
  return octets
}

/** The number of bare CR and LF. */
function bareIn(raw: Buffer, from: number, to: number): number {
  let bare = 0
  for (let at = from; at < to; at += 1) {
    if (raw[at] === cr ? raw[at + 1] !== lf : raw[at] === lf && raw[at - 1] !== cr) bare += 1
  }
  return bare
}

/** Writes these bytes after the first `length`; returns the new length. */
function mend(raw: Buffer, from: number, to: number, octets: Buffer, length: number): number {
  let end = length
  for (let at = from; at < to; at += 1) {
    const octet = raw[at]!
    if (octet === lf && raw[at - 1] !== cr) octets[end++] = cr
    octets[end++] = octet
    if (octet === cr && raw[at + 1] !== lf) octets[end++] = lf
  }
  return end
}

/** True if a line is longer than may be sent; line ends are CRLF. */
export function hasLongLine(octets: Buffer): boolean {
  // of all lines that end within as many bytes as one may have, none is longer
  for (let at = 0; octets.length - at > longestLine;) {
    const end = octets.lastIndexOf(lf, at + longestLine + 1)
    if (end < at) return true
    at = end + 1
  }
  return false
}
