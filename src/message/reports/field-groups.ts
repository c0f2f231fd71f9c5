import { displayLine } from '../../core/text.ts'
import { firstValue, headEnd, type HeaderField, headersOf } from '../headers.ts'
import type { File } from '../mime/model.ts'
import type { Returned } from './reported.ts'

const maxOctets = 256 * 1024
const maxGroups = 400

/** Groups of fields separated by empty lines, as in `message/delivery-status`: at most 400 groups, of the first 256 KiB. */
export function fieldGroups(octets: Buffer): HeaderField[][] {
  const groups: HeaderField[][] = []
  let rest = withoutBlankLines(octets.subarray(0, maxOctets))
  for (let count = 0; rest.length > 0 && count < maxGroups; count++) {
    const end = Math.min(headEnd(rest), rest.length)
    const fields = headersOf(rest.subarray(0, end))
    if (fields.length > 0) groups.push(fields)
    rest = withoutBlankLines(rest.subarray(end))
  }
  return groups
}

/** One line of a report's field, at most 500 characters; null when it is empty or missing. */
export function textOf(fields: readonly HeaderField[], name: string): string | null {
  return lineOf(firstValue(fields, name))
}

/** Text as one line that is safe to display, at most 500 characters; null when nothing is left. */
export function lineOf(text: string | undefined): string | null {
  if (text === undefined) return null
  const line = displayLine(text.slice(0, 2000)).slice(0, 500).toWellFormed()
  return line === '' ? null : line
}

/** An address without angle brackets; null when it is invalid. */
export function bareAddress(text: string | null): string | null {
  const address = text?.replace(/^<|>$/g, '').trim() ?? ''
  return /^[^\s<>]{1,64}@[^\s<>@]{1,255}$/.test(address) ? address : null
}

const returnedTypes = /^(?:message\/(?:rfc822|global|rfc822-headers|global-headers)|text\/rfc822-headers)$/i

/** Identifies the message that a report returns, whole or its header only. */
export function returnedOf(files: readonly File[]): Returned {
  const file = files.find(({ contentType }) => returnedTypes.test(contentType))
  return returnedFrom(file ? headersOf(withoutBlankLines(file.content)) : [])
}

export function returnedFrom(fields: readonly HeaderField[]): Returned {
  return {
    message_id: /<[^<>\s]{1,990}>/.exec(firstValue(fields, 'message-id') ?? '')?.[0] ?? null,
    return_path: bareAddress(textOf(fields, 'return-path')),
  }
}

function withoutBlankLines(octets: Buffer): Buffer {
  let start = 0
  while (octets[start] === 0x0a || octets[start] === 0x0d) start++
  return octets.subarray(start)
}

/** The enhanced code (RFC 3463) in a text. */
export function enhancedCodeIn(text: string | null): string | null {
  return /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?!\.?\d)/.exec(text ?? '')?.[1] ?? null
}

/** The SMTP reply code in a text: at its start, else anywhere. */
export function smtpCodeIn(text: string | null): number | null {
  const found = /^\W{0,9}([245]\d\d)(?=[ \-#]|$)/.exec(text ?? '') ?? /(?<![\d.:/-])([45][0-5]\d)(?=[ \-#]\S)/.exec(text ?? '')
  return found ? Number(found[1]) : null
}
