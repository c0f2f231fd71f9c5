import { invalid } from './fault.ts'
import { mac, sameBytes } from './seal/seal.ts'

/** Opaque positions in lists: what a client hands back is what we gave out, for the same list, or it is refused. */
export class Cursors {
  readonly #key: Buffer

  constructor(key: Buffer) {
    this.#key = key
  }

  /** The list is named by everything but the page: another list, or another filter, does not take the cursor. */
  write(list: string, position: number): string {
    const text = position.toString(36)
    return `${text}.${mac(this.#key, `${list}\n${text}`).subarray(0, 9).toString('base64url')}`
  }

  /** Throws Fault invalid_request, `param: cursor`, for anything this box did not give out for this list. */
  read(list: string, cursor: string): number {
    const position = Number.parseInt(cursor, 36)
    // compared as text: what only decodes to the same octets was not given out either
    if (!Number.isSafeInteger(position) || !sameBytes(Buffer.from(this.write(list, position)), Buffer.from(cursor))) {
      throw invalid('cursor', 'cursor must be the next_cursor of an earlier page of this same list.', 'bad_cursor')
    }
    return position
  }
}
