import { TextDecoder } from 'node:util'

/** One header field of a message. */
export interface HeaderField {
  /** Lower case. */
  name: string
  /** Unfolded (RFC 5322 2.2.3) and trimmed. Encoded words are not decoded. Raw 8-bit text is decoded as UTF-8, else by the charset of the body. */
  value: string
  /** Octets of the field in the message, its line end included: `raw.subarray(start, end)`. */
  start: number
  end: number
}

/** The number of header octets that are read. */
export const headerLimit = 256 * 1024

/** The header fields in order; lines that are not fields are skipped. Reads at most 256 KiB, in linear time, and never throws. */
export function headersOf(raw: Buffer): HeaderField[] {
  const limit = Math.min(headEnd(raw), headerLimit, raw.length)
  const head = raw.toString('latin1', 0, limit)
  const fields: HeaderField[] = []
  const decode = decoderFor(head)
  let start = 0
  while (start < limit) {
    let end = lineEnd(head, start)
    while (end < limit && isBlank(head.charCodeAt(end))) end = lineEnd(head, end)
    const colon = head.slice(start, end).indexOf(':')
    if (colon > 0) {
      const name = head.slice(start, start + colon).trimEnd()
      if (isFieldName(name)) {
        const from = start + colon + 1
        const value = head.slice(from, end)
        const text = eightBit.test(value) ? decode(raw.subarray(from, end)) : value
        fields.push({ name: name.toLowerCase(), value: unfolded(text), start, end })
      }
    }
    start = end
  }
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

/** The value of the first field of this name. */
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

function isBlank(code: number): boolean {
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

// Raw header octets that are not valid UTF-8 are usually in the charset of the body.
function decoderFor(head: string): (octets: Buffer) => string {
  let fallback: TextDecoder | undefined
  return (octets) => {
    const text = octets.toString('utf8')
    if (!text.includes('\uFFFD')) return text
    fallback ??= bodyDecoder(head)
    return fallback.decode(octets)
  }
}

function bodyDecoder(head: string): TextDecoder {
  const field = /^content-type\s?:[^\n]{0,200}(?:\n[ \t][^\n]{0,200}){0,3}?charset\s?=\s?"?([\w.:-]{1,40})/im.exec(
    head.slice(0, 65_536),
  )
  try {
    return new TextDecoder(field?.[1] ?? 'windows-1252')
  } catch {
    return new TextDecoder('windows-1252')
  }
}
