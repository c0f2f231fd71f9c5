import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'

/** One header field of a message. */
export interface HeaderField {
  /** Lower case. */
  name: string
  /** Unfolded (RFC 5322 2.2.3) and trimmed. Encoded words are not decoded. Raw 8-bit text is decoded as UTF-8, else by the charset of the body. */
  value: string
  /** True if the bytes are UTF-8: otherwise another charset of the body would give another value. */
  isUtf8: boolean
  /** Bytes of the field in the message, its line end included: `raw.subarray(start, end)`. */
  start: number
  end: number
}

/** The number of header bytes that are read. */
export const headerLimit = 256 * 1024

/** The header fields in order; lines that are not fields are skipped. Reads at most 256 KiB, in linear time, and never throws. */
export function headersOf(raw: Buffer): HeaderField[] {
  const limit = Math.min(headEnd(raw), headerLimit, raw.length)
  const head = raw.toString('latin1', 0, limit)
  const fields: HeaderField[] = []
  const undecoded: HeaderField[] = []
  let start = 0
  while (start < limit) {
    let end = lineEnd(head, start)
    while (end < limit && isSpace(head.charCodeAt(end))) end = lineEnd(head, end)
    const colon = head.slice(start, end).indexOf(':')
    if (colon > 0) {
      const name = head.slice(start, start + colon).trimEnd()
      if (isFieldName(name)) {
        const from = start + colon + 1
        const value = head.slice(from, end)
        const field: HeaderField = { name: name.toLowerCase(), value: unfolded(value), isUtf8: true, start, end }
        fields.push(field)
        if (eightBit.test(value)) undecoded.push(field)
      }
    }
    start = end
  }
  if (undecoded.length > 0) decode(raw, undecoded, firstValue(fields, 'content-type') ?? '')
  return fields
}

/**
 * True if the header consists of fields only, up to the empty line. Software differs in how it handles another line: some skips it, as `headersOf`
 * does, for others the body begins there.
 */
export function isFieldsThroughout(raw: Buffer, fields: readonly HeaderField[]): boolean {
  let at = 0
  for (const { start, end } of fields) {
    if (start !== at) return false
    at = end
  }
  return at === raw.length || (raw[at] === 0x0d && raw[at + 1] === 0x0a)
}

export function firstValue(fields: readonly HeaderField[], name: string): string | undefined {
  return fields.find((field) => field.name === name)?.value
}

/** The offset of the body, or of the end of the message when there is none; Infinity when the header passes the limit. */
export function headEnd(raw: Buffer): number {
  for (let line = 0; line < raw.length && line <= headerLimit;) {
    const first = raw[line]
    if (first === 0x0a) return line + 1
    if (first === 0x0d && raw[line + 1] === 0x0a) return line + 2
    const next = raw.indexOf(0x0a, line)
    if (next === -1) break
    line = next + 1
  }
  return raw.length <= headerLimit ? raw.length : Infinity
}

function lineEnd(head: string, from: number): number {
  const end = head.indexOf('\n', from)
  return end === -1 ? head.length : end + 1
}

/** True for a space or a tab. */
export function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}

// RFC 5322 3.6.8: printable ASCII without the colon.
function isFieldName(name: string): boolean {
  return name.length <= 998 && /^[!-9;-~]+$/.test(name)
}

// eslint-disable-next-line no-control-regex -- every octet above 127 is looked for
const eightBit = /[^\0-\x7f]/

function unfolded(text: string): string {
  return text.includes('\n') ? text.replace(/\r?\n/g, '').trim() : text.trim()
}

// Raw header bytes that are not valid UTF-8 are usually in the charset of the body.
function decode(raw: Buffer, fields: readonly HeaderField[], contentType: string): void {
  let fallback: TextDecoder | undefined
  for (const field of fields) {
    const whole = raw.subarray(field.start, field.end)
    const octets = whole.subarray(whole.indexOf(0x3a) + 1)
    field.isUtf8 = isUtf8(octets)
    field.value = unfolded(field.isUtf8 ? octets.toString('utf8') : (fallback ??= decoderOf(contentType)).decode(octets))
  }
}

// White space in runs is one space, as for the signatures that cover the field (RFC 6376 3.4.2).
function decoderOf(contentType: string): TextDecoder {
  const text = contentType.replace(/[ \t]+/g, ' ').slice(0, 1000)
  const [, charset] = /charset ?= ?"?([\w.:-]{1,40})/i.exec(text) ?? []
  try {
    return new TextDecoder(charset ?? 'windows-1252')
  } catch {
    return new TextDecoder('windows-1252')
  }
}
