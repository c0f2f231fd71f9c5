import { entriesOf } from './addresses.ts'
import { headEnd, headersOf } from './headers.ts'
import type { HeaderField } from './headers.ts'

export interface Header {
  fields: HeaderField[]
  /** False when the header is longer than what is read of it. */
  complete: boolean
}

/** The one author of a message, or why there is none (RFC 5322 3.6.2). */
export interface Author {
  address: string | null
  reason: 'no-author' | 'multiple-from-fields' | 'multiple-mailboxes' | null
}

/** The header, as far as it is read. */
export function readHeader(raw: Buffer): Header {
  return { fields: headersOf(raw), complete: headEnd(raw) !== Infinity }
}

/** Reads From: exactly one field with exactly one mailbox is an author; anything else is none. */
export function authorOf({ fields }: Header): Author {
  const [first, second] = fields.filter(({ name }) => name === 'from')
  if (!first) return { address: null, reason: 'no-author' }
  if (second) return { address: null, reason: 'multiple-from-fields' }
  const entries = entriesOf(first.value)
  if (entries.length > 1) return { address: null, reason: 'multiple-mailboxes' }
  return entries[0]?.address ? { address: entries[0].address, reason: null } : { address: null, reason: 'no-author' }
}
