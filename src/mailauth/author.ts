import { domainToASCII } from 'node:url'
import { domainNameOf } from '../core/domain-names.ts'
import { domainOf, entriesOf, longestList } from '../message/addresses.ts'
import { headEnd, type HeaderField, headersOf, isFieldsThroughout } from '../message/headers.ts'

export interface Header {
  fields: HeaderField[]
  /** False when the header or its From exceed the limits of what is read. */
  complete: boolean
}

/** The single author of a message, or the reason why there is none (RFC 5322 3.6.2). */
export interface Author {
  /** The domain is normalized by `domainOf`. */
  address: string | null
  reason: 'no-author' | 'multiple-from-fields' | 'multiple-mailboxes' | 'ambiguous-from' | null
  /** For `ambiguous-from`: the domain that people and other software may read. */
  resembles?: string
}

/** The author by the strict rules of `strictAuthorOf`. */
interface StrictAuthor {
  address: string | null
  reason: Author['reason'] | 'malformed-header'
}

/** Reads the header, up to its limits. */
export function readHeader(raw: Buffer): Header {
  const fields = headersOf(raw)
  const end = headEnd(raw)
  const authors = fields.reduce((sum, { name, value }) => (name === 'from' ? sum + value.length : sum), 0)
  return { fields, complete: end !== Infinity && authors <= longestList && isOfFewLines(raw, end) }
}

/** Lines of a header that is verified: the verifier takes quadratic time. Ordinary mail has a few hundred. */
const maxLines = 5000

function isOfFewLines(raw: Buffer, end: number): boolean {
  let at = -1
  for (let lines = 0; lines <= maxLines; lines++) {
    at = raw.indexOf(0x0a, at + 1)
    if (at === -1 || at >= end) return true
  }
  return false
}

/** Reads From. An author is exactly one field with exactly one mailbox, whose domain is valid. */
export function authorOf({ fields }: Header): Author {
  const [first, second] = fields.filter(({ name }) => name === 'from')
  if (!first) return { address: null, reason: 'no-author' }
  if (second) return { address: null, reason: 'multiple-from-fields' }
  const entries = entriesOf(first.value)
  if (entries.length > 1) return { address: null, reason: 'multiple-mailboxes' }
  if (hasOtherAddress(first.value)) return { address: null, reason: 'ambiguous-from' }
  const written = entries[0]?.address ?? ''
  const at = written.lastIndexOf('@')
  if (at === -1) return { address: null, reason: 'no-author' }
  const domain = domainOf(written)
  if (domain !== undefined) return { address: `${written.slice(0, at)}@${domain}`, reason: null }
  const text = written.slice(at + 1, at + longestFrom).replace(/\p{Default_Ignorable_Code_Point}+/gu, '')
  // maps lookalike characters, and stops where the host of a URL ends
  const resembles = domainNameOf(domainToASCII(text).replace(/\.$/, ''))
  return { address: null, reason: 'ambiguous-from', ...(resembles === undefined ? {} : { resembles }) }
}

/** True if a mailbox has another address than the one that is read: after angle brackets, or beside one without them (RFC 5322 3.4). */
function hasOtherAddress(value: string): boolean {
  let [isQuoted, isOpen, isClosed, comments, addresses] = [false, false, false, 0, 0]
  for (let at = 0; at < value.length; at += 1) {
    const character = value[at]
    if (character === '\\') at += 1
    else if (character === '"' && comments === 0) isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (character === '(') comments += 1
    else if (character === ')') comments = Math.max(0, comments - 1)
    else if (comments > 0) continue
    else if (character === '<') isOpen = true
    else if (character === '>') isClosed = true
    else if (character === '@' && isClosed) return true
    else if (character === '@') addresses += 1
  }
  return !isOpen && addresses > 1
}

/**
 * The same as `authorOf`, for messages of our own. There is no author when other software might read a different one, because of the form of
 * From or of header lines that are not fields.
 */
export function strictAuthorOf(raw: Buffer): StrictAuthor {
  const header = readHeader(raw)
  const { fields, complete } = header
  const fromFields = fields.filter(({ name }) => name === 'from')
  if (fromFields.length === 0) return { address: null, reason: 'no-author' }
  if (!complete || !isFieldsThroughout(raw, fields)) return { address: null, reason: 'malformed-header' }
  if (fromFields.some(({ value }) => value.length > longestFrom || !plainFrom.test(value))) {
    return { address: null, reason: 'ambiguous-from' }
  }
  return authorOf(header)
}

/** The longest From field that is read, in characters. */
const longestFrom = 2000

/** `ada@box.test`, `Ada <ada@box.test>`, `"Ada, again" <ada@box.test>`, each optionally followed by a comment. */
const plainFrom =
  /^(?:(?:"(?:[^"\\]|\\.)*"|[^"<>()[\],;:@\\])*<[^\s"<>()[\],;:@\\]+@[^\s"<>()[\],;:@\\]+>|[^\s"<>()[\],;:@\\]+@[^\s"<>()[\],;:@\\]+)\s*(?:\([^"<>()@\\]*\))?$/u
