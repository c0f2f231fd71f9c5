import { hasSpacedBoundary, spacedBoundary, spacedReading, unsignedReading } from './body-reading.ts'
import { firstValue, type HeaderField, isFieldsThroughout } from '../message/headers.ts'

/** The fields of a header, as they are shown, and as a verifier of signatures read them. */
export class SignedHeader {
  readonly #raw: Buffer
  readonly #fields: readonly HeaderField[]
  readonly #counts: ReadonlyMap<string, number>
  readonly #isPlain: boolean
  readonly #readings = new Map<string, { flaw: string | null }>()
  #spacing: { flaw: string | null } | undefined

  /** `names`: of the fields as the verifier found them, in lower case. */
  constructor(raw: Buffer, fields: readonly HeaderField[], names: readonly (string | null | undefined)[]) {
    this.#raw = raw
    this.#fields = fields
    // RFC 5322 3.6.8; RFC 5322 4.5 has a blank before the colon, and to some readers that is no field
    this.#isPlain = isFieldsThroughout(raw, fields) && fields.every(({ name, start }) => raw[start + name.length] === colon)
    const counts = new Map<string, number>()
    for (const name of names) if (name) counts.set(name, (counts.get(name) ?? 0) + 1)
    this.#counts = counts
  }

  /**
   * What a signature over these lines covers: `fields` are the names all of whose instances are signed. `flaw` says why it speaks for nothing
   * that is shown, if so (RFC 6376 8.15): verifiers take the last instances of a field, readers the first, so more instances of a field that
   * occurs once than are signed, or one that reads otherwise, are somebody else's. A Subject that is not signed is a flaw too, as for other
   * receivers (maddy, mox): whoever passes the message on could write another.
   *
   * `ambiguity` says why what was signed can be read in two ways, as honest mail sometimes can: the signature proves the author, not what is shown.
   * A Content-Type often is not signed (by Gmail, GitHub and more), so what it and the fields like it say is held against the body, which is. In a
   * header that is not fields throughout, whoever passes the message on may have put a line of their own below what is signed, and to many readers
   * the body begins with it.
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
      const shown = this.#fields.filter((field) => field.name === name).map((field) => this.#textOf(field))
      const count = this.#countOf(name)
      // signed from the last to the first (RFC 6376 5.4.2)
      const same = shown.length === texts.length && shown.every((text, index) => text === texts.at(-1 - index))
      if (count === texts.length && same) fields.push(name)
      else if (once.has(name)) flaw ??= count > texts.length ? severalOf(name) : `${titleOf(name)} can be read in two ways`
    }
    const twice = bodily.find((name) => !fields.includes(name) && this.#countOf(name) > 1)
    if (twice !== undefined) flaw ??= severalOf(twice)
    if (!fields.includes('subject') && firstValue(this.#fields, 'subject') !== undefined) flaw ??= 'Subject is not signed'
    const ambiguity = this.#isPlain
      ? this.#readingUnder(bodily.filter((name) => fields.includes(name)))
      : 'the header has a line that is no field, or a blank before a colon'
    return { fields, flaw, ambiguity }
  }

  /** As `unsignedReading`, once for each set of fields that signatures cover. */
  #readingUnder(signed: readonly string[]): string | null {
    const names = signed.join()
    const known = this.#readings.get(names)
    if (known) return known.flaw
    const flaw = unsignedReading(this.#raw, this.#fields, (name) => signed.includes(name))
    this.#readings.set(names, { flaw })
    return flaw
  }

  /** Instances that are shown, or that the verifier found, whichever are more. */
  #countOf(name: string): number {
    const shown = this.#fields.reduce((count, field) => (field.name === name ? count + 1 : count), 0)
    return Math.max(shown, this.#counts.get(name) ?? 0)
  }

  /** Why a passing signature of this canonicalization (of header and body, `relaxed/simple`) says nothing of how the parts are shown; null when it does. */
  spacing(canonicalization: string): string | null {
    const [ofHeader, ofBody] = canonicalization.split('/').map((one) => one.trim().toLowerCase() === 'relaxed')
    if (ofBody) {
      this.#spacing ??= { flaw: spacedReading(this.#raw, this.#fields) }
      return this.#spacing.flaw
    }
    return ofHeader && hasSpacedBoundary(firstValue(this.#fields, 'content-type') ?? '') ? spacedBoundary : null
  }

  #textOf({ start, end }: HeaderField): string {
    const text = this.#raw.toString('utf8', start, end).replace(/\r?\n/g, '\r\n')
    let length = text.length
    while (text.endsWith('\r\n', length)) length -= 2
    return text.slice(0, length)
  }
}

/** The first field that decides how the body is read (RFC 2045 3) and is there more than once; null when there is none. */
export function doubledIn(fields: readonly HeaderField[]): string | null {
  return bodily.find((name) => fields.filter((field) => field.name === name).length > 1) ?? null
}

/** Says that there is more than one field of this name. */
export function severalOf(name: string): string {
  return `there is more than one ${titleOf(name)}`
}

const colon = 0x3a

const bodily = ['content-type', 'mime-version', 'content-transfer-encoding', 'content-disposition']

/** The fields that occur once at most: RFC 5322 3.6, RFC 2045 3, RFC 2183 2 and RFC 3282 2. */
const once: ReadonlySet<string> = new Set(
  [
    'date from sender reply-to to cc bcc message-id in-reply-to references subject',
    'content-type mime-version content-transfer-encoding content-id content-description content-disposition content-language',
  ].flatMap((names) => names.split(' ')),
)

/** `message-id` → `Message-ID`, as people write it. */
function titleOf(name: string): string {
  return name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase()).replace(/^Mime-|-Id$/, (part) => part.toUpperCase())
}
