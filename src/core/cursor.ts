import { invalid } from './fault.ts'
import { mac, sameBytes } from './seal/seal.ts'

/** Opaque positions in lists. A cursor is accepted only for the list it was issued for. */
export class Cursors {
  readonly #key: Buffer

  constructor(key: Buffer) {
    this.#key = key
  }

  /** `list` names the list and its filters; a cursor of another list or filter is refused. */
  write(list: string, position: number): string {
    const text = position.toString(36)
    return `${text}.${mac(this.#key, `${list}\n${text}`).subarray(0, 9).toString('base64url')}`
  }

  /** Throws Fault invalid_request, `param: cursor`, for a cursor this box did not issue for this list. */
  read(list: string, cursor: string): number {
    const position = Number.parseInt(cursor, 36)
    // compared as text: another text that decodes to the same bytes was not issued either
    if (!Number.isSafeInteger(position) || !sameBytes(Buffer.from(this.write(list, position)), Buffer.from(cursor))) {
      throw invalid('cursor', 'cursor must be the next_cursor of an earlier page of the same list.', 'bad_cursor')
    }
    return position
  }
}
