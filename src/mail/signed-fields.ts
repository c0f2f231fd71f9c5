import type { HeaderField } from './headers.ts'

/** The fields of a header, as they are shown, and as a verifier of signatures read them. */
export class SignedHeader {
  readonly #raw: Buffer
  readonly #fields: readonly HeaderField[]
  readonly #counts: ReadonlyMap<string, number>

  /** `names`: of the fields as the verifier found them, in lower case. */
  constructor(raw: Buffer, fields: readonly HeaderField[], names: readonly (string | null | undefined)[]) {
    this.#raw = raw
    this.#fields = fields
    const counts = new Map<string, number>()
    for (const name of names) if (name) counts.set(name, (counts.get(name) ?? 0) + 1)
    this.#counts = counts
  }

  /**
   * What a signature over these lines covers: `fields` are the names all of whose instances are signed. `flaw` says why it speaks for nothing
   * that is shown, if so (RFC 6376 8.15): verifiers take the last instances of a field, readers the first, so more instances of a field that
   * occurs once than are signed, or one that reads otherwise, are somebody else's. A Subject that is not signed is a flaw too: whoever passes
   * the message on could write another.
   */
  coveredBy(lines: readonly string[]): { fields: string[]; flaw: string | null } {
    const signed = new Map<string, string[]>()
    for (const line of lines) {
      const name = line.slice(0, Math.max(0, line.indexOf(':'))).trim().toLowerCase()
      signed.set(name, [...(signed.get(name) ?? []), line])
    }
    const twice = this.doubled()
    let flaw = twice === null ? null : severalOf(twice)
    const fields: string[] = []
    for (const [name, texts] of signed) {
      const shown = this.#fields.filter((field) => field.name === name).map((field) => this.#textOf(field))
      const count = Math.max(shown.length, this.#counts.get(name) ?? 0)
      // signed from the last to the first (RFC 6376 5.4.2)
      const same = shown.length === texts.length && shown.every((text, index) => text === texts.at(-1 - index))
      if (count === texts.length && same) fields.push(name)
      else if (once.has(name)) flaw ??= count > texts.length ? severalOf(name) : `${titleOf(name)} can be read in two ways`
    }
    if (!fields.includes('subject') && this.#fields.some(({ name }) => name === 'subject')) flaw ??= 'Subject is not signed'
    return { fields, flaw }
  }

  /** A field that decides how the body is read and is there more than once. */
  doubled(): string | null {
    return doubledIn(this.#fields) ?? bodily.find((name) => (this.#counts.get(name) ?? 0) > 1) ?? null
  }

  #textOf({ start, end }: HeaderField): string {
    return this.#raw
      .toString('utf8', start, end)
      .replace(/\r?\n/g, '\r\n')
      .replace(/(?:\r\n)+$/, '')
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

const bodily = ['content-type', 'mime-version', 'content-transfer-encoding']

/** The fields that occur once at most: RFC 5322 3.6, RFC 2045, RFC 2369 3.4 and RFC 8058 3.1. */
const once: ReadonlySet<string> = new Set([
  ...['date', 'from', 'sender', 'reply-to', 'to', 'cc', 'bcc', 'message-id', 'in-reply-to', 'references', 'subject'],
  ...bodily,
  ...['content-id', 'content-description', 'content-disposition', 'content-language'],
  ...['list-id', 'list-help', 'list-subscribe', 'list-unsubscribe', 'list-unsubscribe-post', 'list-post', 'list-owner', 'list-archive'],
])

/** `message-id` → `Message-ID`, as people write it. */
function titleOf(name: string): string {
  return name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase()).replace(/^Mime-|-Id$/, (part) => part.toUpperCase())
}
