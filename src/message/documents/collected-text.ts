import { Fault } from '../../core/fault.ts'

/** Characters of one document that are read; the rest is left out. */
export const longestText = 1_000_000

/** Short texts that are joined at once. */
const maxPieces = 4096

/** The text of a document while it is read. */
export class CollectedText {
  #pieces: string[] = []
  #length = 0

  /** Throws TextIsFull when the text is as long as it may be. */
  add(text: string): void {
    const room = longestText - this.#length
    this.#pieces.push(text.length > room ? text.slice(0, room) : text)
    this.#length += Math.min(text.length, room)
    if (text.length >= room) throw new TextIsFull()
    if (this.#pieces.length >= maxPieces) this.#pieces = [this.#pieces.join('')]
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  toString(): string {
    return this.#pieces.join('')
  }
}

/** The document is read no further. */
export class TextIsFull extends Error {}

/** The formats of which text can be read, for messages. */
const readable = 'PDF, DOCX, XLSX, HTML, CSV and other plain text'

/** 400: an attachment in a format of which text cannot be read. */
export function notText(what: string): Fault {
  return new Fault('invalid_request', `${what}. Text can be read of ${readable}.`, { code: 'attachment_not_text' })
}

/** 400: the attachment is damaged, encrypted, or has no meaning to the readers. */
export function unreadable(why: string, cause?: unknown): Fault {
  return new Fault('invalid_request', `The attachment cannot be read as text: ${why}.`, { code: 'attachment_unreadable', cause })
}

/** 400: reading it would take too much memory or time. */
export function tooLargeForText(why: string): Fault {
  return new Fault('invalid_request', `The attachment is too large to be read as text: ${why}.`, {
    code: 'attachment_too_large_for_text',
  })
}
