import { upToJsonBytes } from '../core/text.ts'
import type { Lookup } from '../net/dns.ts'
import type { FreshInquiry } from '../mailauth/inquire.ts'
import type { DnsRecord } from './model.ts'
import type { DomainSettings } from './records.ts'

/** The result of the check of one record. */
export type Judged = Pick<DnsRecord, 'status' | 'found' | 'reason'>

/** The context of a check; `lookup` does not cache. */
export interface CheckContext {
  lookup: Lookup
  spf: FreshInquiry['spf']
  settings: DomainSettings
}

/** No server answered; `code` is Node's, such as ETIMEOUT. */
export class Unanswered extends Error {
  readonly code: string

  constructor(code: string) {
    super(`The DNS lookup failed (${code}).`)
    this.name = 'Unanswered'
    this.code = code
  }
}

export function valid(found: string[]): Judged {
  return { status: 'valid', found: listed(found), reason: null }
}

export function invalid(found: string[], reason: string): Judged {
  return { status: 'invalid', found: listed(found), reason: shortened(reason, longestReason) }
}

export function missing(reason: string): Judged {
  return { status: 'missing', found: [], reason: shortened(reason, longestReason) }
}

/** For records that must exist exactly once: selects the only text of this kind; two are as wrong as none. `fault` returns its fault. */
export function only(
  values: string[],
  kind: RegExp,
  { name, value, what }: { name: string; value: string; what: string },
  fault: (text: string) => string | null,
): Judged {
  const found = values.filter((text) => kind.test(text))
  const [first] = found
  if (first === undefined) {
    const quoted = values.filter((text) => kind.test(unquoted(text)))
    if (quoted.length > 0) return invalid(quoted, `The quotes are part of the record; enter it without them: ${value}`)
    return invalid(values, `None of the TXT records at ${name} is a ${what} record; one should be “${value}”.`)
  }
  if (found.length > 1)
    return invalid(found, `There are ${found.length} ${what} records at ${name}, so none is valid; leave one.`)
  const reason = fault(first)
  return reason === null ? valid(found) : invalid(found, reason)
}

/** Removes quotes and escapes that people or DNS forms add to a plain text. */
export function unquoted(text: string): string {
  return text
    .trim()
    .replaceAll(/\\(.)/g, '$1')
    .replace(/^["'](.*)["']$/s, '$1')
    .replaceAll(/"\s*"/g, '')
}

/** The most values of a record that are stored, and the most bytes of JSON of one, of all, and of a reason: strangers choose them. */
const maxValues = 10
const longestValue = 500
const maxOctets = 3000
const longestReason = 1000

function listed(found: string[]): string[] {
  const values = found.slice(0, maxValues)
  return values.map((text) => shortened(text, Math.min(longestValue, Math.floor(maxOctets / values.length))))
}

/** A text of at most so many octets of JSON; control characters are escaped as in zone files (RFC 1035 5.1). */
function shortened(text: string, most: number): string {
  const whole = text
    .slice(0, most)
    .replaceAll(/\p{Cc}/gu, (character) => `\\${String(character.codePointAt(0)).padStart(3, '0')}`)
  const shown = upToJsonBytes(whole, most)
  return text.length > most || shown.length < whole.length ? `${shown}…` : shown
}
