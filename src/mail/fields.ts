import { parsed } from './addresses.ts'
import type { Address } from './model.ts'

/** A header field as it lies in the message: the name in lower case, and where its octets are. */
export interface Field {
  name: string
  start: number
  /** Behind the last line break of the field. */
  end: number
  /** Where the value begins, behind the colon. */
  value: number
}

export interface Header {
  fields: Field[]
  /** Where the header section ends: the offset of the empty line, or the length of the message. */
  end: number
  /** False when the header is longer than the limit; the fields are then those below it. */
  complete: boolean
}

/** The one author of a message, or why there is none (RFC 5322 3.6.2). */
export interface Author {
  address: string | null
  name: string
  reason: 'no-author' | 'multiple-from-fields' | 'multiple-mailboxes' | null
}

/** Longest header section that is looked at, in octets. */
export const headerLimit = 256 * 1024

const fieldStart = /^([\x21-\x39\x3b-\x7e]+)[ \t]*:/

/** Finds the header fields without decoding them; linear in the header's length, whatever it holds. */
export function readHeader(raw: Buffer): Header {
  const fields: Field[] = []
  let position = 0
  while (position < raw.length) {
    if (position > headerLimit) return { fields, end: position, complete: false }
    const newline = raw.indexOf(10, position)
    const next = newline < 0 ? raw.length : newline + 1
    if (next - position <= 2 && raw[next - 1] === 10 && (next - position === 1 || raw[position] === 13)) break
    readLine(raw, position, next, fields)
    position = next
  }
  return { fields, end: position, complete: position <= headerLimit }
}

/** The value of a field as text: UTF-8, unfolded, trimmed. */
export function valueOf(raw: Buffer, field: Field): string {
  return raw.toString('utf8', field.value, field.end).replace(/\r?\n/g, '').trim()
}

/** Reads From: exactly one field with exactly one mailbox is an author; anything else is none. */
export function authorOf(raw: Buffer, header: Header): Author {
  const from = header.fields.filter((field) => field.name === 'from')
  const first = from[0]
  if (!first) return { address: null, name: '', reason: 'no-author' }
  if (from.length > 1) return { address: null, name: '', reason: 'multiple-from-fields' }
  const mailboxes = parsed(valueOf(raw, first))
  const [mailbox, second] = mailboxes
  if (second) return { address: null, name: '', reason: 'multiple-mailboxes' }
  if (!mailbox?.address) return { address: null, name: '', reason: 'no-author' }
  return { address: mailbox.address, name: mailbox.name, reason: null }
}

/** The mailboxes of all fields of this name; of a long field only its first octets are read. */
export function mailboxesOf(raw: Buffer, header: Header, name: string, most = 2048): Address[] {
  return header.fields
    .filter((field) => field.name === name)
    .flatMap((field) => parsed(valueOf(raw, { ...field, end: Math.min(field.end, field.value + most) })))
}

function readLine(raw: Buffer, start: number, end: number, fields: Field[]) {
  const last = fields.at(-1)
  // A field name has at most 76 characters in practice; a longer start of a line is text, not a field.
  const match =
    raw[start] === 32 || raw[start] === 9 ? null : fieldStart.exec(raw.toString('latin1', start, Math.min(end, start + 256)))
  if (match) fields.push({ name: match[1]!.toLowerCase(), start, end, value: start + match[0].length })
  else if (last) last.end = end
}
