import { hasSpacedBoundary, boundaryWhitespace, whitespaceAmbiguity, unsignedAmbiguity } from './body-reading.ts'
import { firstValue, type HeaderField, isFieldsThroughout } from '../message/headers.ts'

/** Compares the fields of a header as displayed with those that a signature covers. */
export class SignedHeader {
  readonly #raw: Buffer
  readonly #fields: readonly HeaderField[]
  readonly #counts: ReadonlyMap<string, number>
  readonly #isPlain: boolean
  readonly #readings = new Map<string, { flaw: string | null }>()
  #spacing: { flaw: string | null } | undefined

  /** `names` are the names of the fields found by the verifier, in lower case. */
  constructor(raw: Buffer, fields: readonly HeaderField[], names: readonly (string | null | undefined)[]) {
    this.#raw = raw
    this.#fields = fields
    // RFC 5322 3.6.8. A blank before the colon (RFC 5322 4.5) is not a field to some software.
    this.#isPlain = isFieldsThroughout(raw, fields) && fields.every(({ name, start }) => raw[start + name.length] === colon)
    const counts = new Map<string, number>()
    for (const name of names) if (name) counts.set(name, (counts.get(name) ?? 0) + 1)
    this.#counts = counts
  }

  /**
   * The coverage of a signature over these lines: `fields` are the names of which all instances are signed. `flaw` is why the signature does not
   * count (RFC 6376 8.15): verifiers use the last instances of a field, readers the first. So for a field that may occur once, more instances
   * than are signed, or a different reading, may come from an attacker. An unsigned Subject is a flaw too, as for other receivers (maddy, mox):
   * any forwarder could replace it.
   *
   * `ambiguity` is why the signed content is ambiguous, as sometimes happens in legitimate mail: the signature then proves the author,
   * but not what is displayed. Content-Type is often not signed (Gmail, GitHub and others), so it and similar fields are compared with the signed
   * body, and without it signed bytes that are not UTF-8 have no charset. In a header with lines that are not fields, a forwarder may have inserted
   * such a line, and to many readers the body begins there.
   */
  coveredBy(lines: readonly string[]): { fields: string[]; flaw: string | null; ambiguity: string | null } {
    const signed = new Map<string, string[]>()
    for (const line of lines) {
      const name = line
        .slice(0, Math.max(0, line.indexOf(':')))
        .trim()
        .toLowerCase()
      signed.set(name, [...(signed.get(name) ?? []), line])
    }
    let flaw: string | null = null
    const fields: string[] = []
    for (const [name, texts] of signed) {
      const present = this.#fields.filter((field) => field.name === name).map((field) => this.#textOf(field))
      const count = this.#countOf(name)
      // instances are signed from last to first (RFC 6376 5.4.2)
      const isEqual = present.length === texts.length && present.every((text, index) => text === texts.at(-1 - index))
      if (count === texts.length && isEqual) fields.push(name)
      else if (singleFields.has(name)) flaw ??= count > texts.length ? duplicateReason(name) : `${displayName(name)} is ambiguous`
    }
    const duplicate = bodyFields.find((name) => !fields.includes(name) && this.#countOf(name) > 1)
    if (duplicate !== undefined) flaw ??= duplicateReason(duplicate)
    if (!fields.includes('subject') && firstValue(this.#fields, 'subject') !== undefined) flaw ??= 'Subject is not signed'
    return { fields, flaw, ambiguity: this.#ambiguityUnder(fields) }
  }

  #ambiguityUnder(signed: readonly string[]): string | null {
    if (!this.#isPlain) return 'the header has a line that is not a field, or a blank before a colon'
    const other = signed.includes('content-type')
      ? undefined
      : this.#fields.find((one) => !one.isUtf8 && signed.includes(one.name))
    if (other) return `${displayName(other.name)} has octets that are not UTF-8, and Content-Type is not signed`
    return this.#readingUnder(bodyFields.filter((name) => signed.includes(name)))
  }

  /** The same as `unsignedAmbiguity`, cached for each set of covered fields. */
  #readingUnder(signed: readonly string[]): string | null {
    const names = signed.join()
    const known = this.#readings.get(names)
    if (known) return known.flaw
    const flaw = unsignedAmbiguity(this.#raw, this.#fields, (name) => signed.includes(name))
    this.#readings.set(names, { flaw })
    return flaw
  }

  /** The larger of the number of instances in the header, and the number that the verifier found. */
  #countOf(name: string): number {
    const present = this.#fields.reduce((count, field) => (field.name === name ? count + 1 : count), 0)
    return Math.max(present, this.#counts.get(name) ?? 0)
  }

  /**
   * Why white space makes the content ambiguous under a passing signature of this canonicalization (`relaxed/simple`:
   * header/body); null when it does not.
   */
  spacing(canonicalization: string): string | null {
    const [ofHeader, ofBody] = canonicalization.split('/').map((one) => one.trim().toLowerCase() === 'relaxed')
    if (ofBody) {
      this.#spacing ??= { flaw: whitespaceAmbiguity(this.#raw, this.#fields) }
      return this.#spacing.flaw
    }
    return ofHeader && hasSpacedBoundary(firstValue(this.#fields, 'content-type') ?? '') ? boundaryWhitespace : null
  }

  #textOf({ start, end }: HeaderField): string {
    const text = this.#raw.toString('utf8', start, end).replace(/\r?\n/g, '\r\n')
    let length = text.length
    while (text.endsWith('\r\n', length)) length -= 2
    return text.slice(0, length)
  }
}

/** The first field that determines how the body is decoded (RFC 2045 3) and that occurs more than once; null when there is none. */
export function duplicateBodyField(fields: readonly HeaderField[]): string | null {
  return bodyFields.find((name) => fields.filter((field) => field.name === name).length > 1) ?? null
}

/** The reason for a field that occurs more than once. */
export function duplicateReason(name: string): string {
  return `there is more than one ${displayName(name)}`
}

const colon = 0x3a

const bodyFields = ['content-type', 'mime-version', 'content-transfer-encoding', 'content-disposition']

/** The fields that occur once at most: RFC 5322 3.6, RFC 2045 3, RFC 2183 2 and RFC 3282 2. */
const singleFields: ReadonlySet<string> = new Set(
  [
    'date from sender reply-to to cc bcc message-id in-reply-to references subject',
    'content-type mime-version content-transfer-encoding content-id content-description content-disposition content-language',
  ].flatMap((names) => names.split(' ')),
)

/** The usual spelling of a field name: `message-id` → `Message-ID`. */
function displayName(name: string): string {
  return name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase()).replace(/^Mime-|-Id$/, (part) => part.toUpperCase())
}
