import type { Lookup } from '../net/dns.ts'
import type { FreshInquiry } from '../mailauth/inquire.ts'
import type { DnsRecord } from './model.ts'
import type { DomainSettings } from './settings.ts'

/** What was seen in one place, and what it is worth. */
export type Judged = Pick<DnsRecord, 'status' | 'found' | 'reason'>

/** What a judgement is made with; `lookup` remembers nothing from before. */
export interface Bench {
  lookup: Lookup
  spf: FreshInquiry['spf']
  settings: DomainSettings
}

/** Nobody knows what the DNS says at present; `code` is Node's own, such as ETIMEOUT. */
export class Unanswered extends Error {
  readonly code: string

  constructor(code: string) {
    super(`The DNS gave no answer (${code}).`)
    this.name = 'Unanswered'
    this.code = code
  }
}

export function valid(found: string[]): Judged {
  return { status: 'valid', found: shortened(found), reason: null }
}

export function invalid(found: string[], reason: string): Judged {
  return { status: 'invalid', found: shortened(found), reason }
}

export function missing(reason: string): Judged {
  return { status: 'missing', found: [], reason }
}

/**
 * For what must be there exactly once: of several texts the one of this kind decides, and two are as bad as none. `fault` says what is wrong
 * with it.
 */
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
    return invalid(values, `None of the TXT records at ${name} is of the kind ${what}; one should be “${value}”.`)
  }
  if (found.length > 1) return invalid(found, `There are ${found.length} ${what} records at ${name}, so none counts; leave one.`)
  const reason = fault(first)
  return reason === null ? valid(found) : invalid(found, reason)
}

/** What a person meant who wrote quotes, and what a form escaped, into a field that takes plain text. */
export function unquoted(text: string): string {
  return text
    .trim()
    .replaceAll(/\\(.)/g, '$1')
    .replace(/^["'](.*)["']$/s, '$1')
    .replaceAll(/"\s*"/g, '')
}

/** Anybody can fill the DNS with anything. */
function shortened(found: string[]): string[] {
  return found.slice(0, 10).map((text) => (text.length > 1000 ? `${text.slice(0, 1000)}…` : text))
}
