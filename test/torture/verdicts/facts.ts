import { nameOf, tagsOf } from './signer.ts'
import type { Try } from './try.ts'
import type { Zone } from './zone.ts'

/** A signature and the record of its key. */
export interface SignatureFacts {
  /** The field as written. */
  field: string
  tags: Record<string, string>
  /** Undefined where there is none, or where it is not known. */
  record: string | undefined
  message: string
}

/** True if the field ends with blanks that the simple form keeps. */
export function hasBlankEnd({ field, tags }: SignatureFacts): boolean {
  return /\s$/.test(field) && !/^relaxed/i.test(tags['c'] ?? '')
}

/** The signature and the key of a field. */
export function factsOf(field: string, { raw, zone }: Try): SignatureFacts {
  const tags = tagsOf(field.slice(field.indexOf(':') + 1))
  return { field, tags, record: recordOf(tags, zone), message: raw.toString('latin1') }
}

/** The fields of a message with this name, as written, from the top. */
export function fieldsOf(raw: Buffer, name: string): string[] {
  return headOf(raw.toString('latin1'))
    .split(/\r\n(?![ \t])/)
    .filter((field) => field.includes(':') && nameOf(field) === name)
}

/** The header of a message. */
export function headOf(message: string): string {
  return message.startsWith('\r\n') ? '' : message.split('\r\n\r\n', 1)[0]!
}

/** The fields of an ARC chain. */
export function chainOf(message: string): string[] {
  return headOf(message)
    .split(/\r\n(?![ \t])/)
    .filter((field) => /^arc-/i.test(field))
}

/** The header of a message with each field in one line. */
export function unfolded(message: string): string {
  return headOf(message).replaceAll(/\r\n(?=[ \t])/g, '')
}

function recordOf(tags: Record<string, string>, zone: Zone): string | undefined {
  return zone[`${tags['s']}._domainkey.${tags['d']}`.toLowerCase()]?.TXT?.[0]?.join('')
}

/** The `t=` of a key record. */
export function flags(record: string | undefined): string[] {
  return listOf(tagsOf(record ?? '')['t'])
}

/** The items of a list with colons, in lower case and without white space. */
export function listOf(text = ''): string[] {
  return text.split(':').map((item) => item.replaceAll(/\s/g, '').toLowerCase())
}
