/** One header field as it stands in the message. */
export interface HeaderField {
  /** Lower case. */
  name: string
  /** Unfolded (RFC 5322 2.2.3) and trimmed; encoded words are left as they are; raw 8-bit text is read as UTF-8, else as Latin-1. */
  value: string
  /** Octets of the field in the message, its line end included: `raw.subarray(start, end)`. */
  start: number
  end: number
}

/** The most header octets that are read. */
export const headerLimit = 256 * 1024

/** The header fields in their order; what is not a field is passed over. Reads at most 256 KiB, in linear time, and never throws. */
export function headersOf(raw: Buffer): HeaderField[] {
  const limit = Math.min(headEnd(raw), headerLimit, raw.length)
  const head = raw.toString('latin1', 0, limit)
  const fields: HeaderField[] = []
  let start = 0
  while (start < limit) {
    let end = lineEnd(head, start)
    while (end < limit && isBlank(head.charCodeAt(end))) end = lineEnd(head, end)
    const colon = head.slice(start, end).indexOf(':')
    if (colon > 0) {
      const name = head.slice(start, start + colon).trimEnd()
      if (isFieldName(name))
        fields.push({ name: name.toLowerCase(), value: valueOf(raw, head, start + colon + 1, end), start, end })
    }
    start = end
  }
  return fields
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

function valueOf(raw: Buffer, head: string, from: number, end: number): string {
  const latin1 = head.slice(from, end)
  // eslint-disable-next-line no-control-regex -- every octet above 127 is looked for
  const text = /[^\0-\x7f]/.test(latin1) ? eightBit(raw.subarray(from, end), latin1) : latin1
  return text.includes('\n') ? text.replace(/\r?\n/g, '').trim() : text.trim()
}

function eightBit(octets: Buffer, latin1: string): string {
  const text = octets.toString('utf8')
  return text.includes('\uFFFD') ? latin1 : text
}
