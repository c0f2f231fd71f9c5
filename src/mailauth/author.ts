import { domainToASCII } from 'node:url'
import { domainNameOf } from '../core/domain-names.ts'
import { domainOf, entriesOf, longestList } from '../message/addresses.ts'
import { headEnd, type HeaderField, headersOf, isFieldsThroughout } from '../message/headers.ts'

export interface Header {
  fields: HeaderField[]
  /** False when the header is longer, or has more lines, than what is read of it; or its From does. */
  complete: boolean
}

/** The one author of a message, or why there is none (RFC 5322 3.6.2). */
export interface Author {
  /** The domain is as `domainOf` has it. */
  address: string | null
  reason: 'no-author' | 'multiple-from-fields' | 'multiple-mailboxes' | 'ambiguous-from' | null
  /** Of an `ambiguous-from` the domain that people and other programs may take it for. */
  resembles?: string
}

/** The same, where every doubt is a reason. */
export interface SureAuthor {
  address: string | null
  reason: Author['reason'] | 'malformed-header'
}

/** The header, as far as it is read. */
export function readHeader(raw: Buffer): Header {
  const fields = headersOf(raw)
  const end = headEnd(raw)
  const authors = fields.reduce((sum, { name, value }) => (name === 'from' ? sum + value.length : sum), 0)
  return { fields, complete: end !== Infinity && authors <= longestList && isOfFewLines(raw, end) }
}

/** Lines of a header that is verified: the verifier's time grows with their square. People's mail has a few hundred. */
const maxLines = 5000

function isOfFewLines(raw: Buffer, end: number): boolean {
  let at = -1
  for (let lines = 0; lines <= maxLines; lines++) {
    at = raw.indexOf(0x0a, at + 1)
    if (at === -1 || at >= end) return true
  }
  return false
}

/** Reads From: exactly one field with exactly one mailbox, whose domain is one, is an author; anything else is none. */
export function authorOf({ fields }: Header): Author {
  const [first, second] = fields.filter(({ name }) => name === 'from')
  if (!first) return { address: null, reason: 'no-author' }
  if (second) return { address: null, reason: 'multiple-from-fields' }
  const entries = entriesOf(first.value)
  if (entries.length > 1) return { address: null, reason: 'multiple-mailboxes' }
  const written = entries[0]?.address ?? ''
  const at = written.lastIndexOf('@')
  if (at === -1) return { address: null, reason: 'no-author' }
  const domain = domainOf(written)
  if (domain !== undefined) return { address: `${written.slice(0, at)}@${domain}`, reason: null }
  const text = written.slice(at + 1, at + longestFrom).replace(/\p{Default_Ignorable_Code_Point}+/gu, '')
  // takes what looks like other characters for those, and stops where the host of a URL does
  const resembles = domainNameOf(domainToASCII(text).replace(/\.$/, ''))
  return { address: null, reason: 'ambiguous-from', ...(resembles === undefined ? {} : { resembles }) }
}

/**
 * As `authorOf`, of a message of our own: one that another program might read differently has none, be it for its From or for a header
 * that is not fields throughout.
 */
export function sureAuthorOf(raw: Buffer): SureAuthor {
  const header = readHeader(raw)
  const { fields, complete } = header
  const froms = fields.filter(({ name }) => name === 'from')
  if (froms.length === 0) return { address: null, reason: 'no-author' }
  if (!complete || !isFieldsThroughout(raw, fields)) return { address: null, reason: 'malformed-header' }
  if (froms.some(({ value }) => value.length > longestFrom || !plainFrom.test(value))) {
    return { address: null, reason: 'ambiguous-from' }
  }
  return authorOf(header)
}

/** Characters of a From field that is worth reading. */
const longestFrom = 2000

/** `ada@box.test`, `Ada <ada@box.test>`, `"Ada, again" <ada@box.test>`, each perhaps with a comment at its end. */
const plainFrom =
  /^(?:(?:"(?:[^"\\]|\\.)*"|[^"<>()[\],;:@\\])*<[^\s"<>()[\],;:@\\]+@[^\s"<>()[\],;:@\\]+>|[^\s"<>()[\],;:@\\]+@[^\s"<>()[\],;:@\\]+)\s*(?:\([^"<>()@\\]*\))?$/u
