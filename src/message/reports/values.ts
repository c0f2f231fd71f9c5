import { isIP } from 'node:net'
import { domainNameOf } from '../../core/domain-names.ts'
import { lineOf } from './field-groups.ts'

/** Bytes of the rows of one report that are kept, as JSON. */
const maxOctets = 64 * 1024

/** Counts the bytes of what is kept of one report. */
export class ByteBudget {
  #left = maxOctets

  /** Counts the entry if there is room for it, and returns whether there is. */
  takes(entry: object): boolean {
    const octets = Buffer.byteLength(JSON.stringify(entry)) + 1
    if (octets > this.#left) return false
    this.#left -= octets
    return true
  }
}

/** One line of at most 255 characters; null when it is empty or missing. */
export function shortLine(text: string | undefined): string | null {
  return lineOf(text)?.slice(0, 255).toWellFormed() ?? null
}

/** An IP address without a zone; null for any other text. */
export function addressIn(text: string | undefined): string | null {
  return text !== undefined && isIP(text) !== 0 && !text.includes('%') ? text : null
}

/** A domain name in lower-case A-labels, without the dot at its end; null for any other text. */
export function domainIn(text: string | undefined): string | null {
  return domainNameOf(text?.replace(/\.$/, '') ?? '') ?? null
}

/** A word of a registry, such as `certificate-expired`, of at most 64 characters; null for any other text. */
export function wordIn(text: string | undefined): string | null {
  return text !== undefined && /^[a-z\d][a-z\d:._-]{0,63}$/i.test(text) ? text : null
}
