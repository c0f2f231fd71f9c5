import { Fault } from '../core/fault.ts'

export const tooManyChunks = 'too_many_chunks'

/** Chunks that any body may come in. */
const always = 16_384

/** Octets of the body for each chunk beyond those. */
const eachAbove = 512

/** Counts the chunks of one body: each is an object for as long as the body is read, which weighs far more than an octet does. */
export class Chunks {
  #count = 0
  #octets = 0

  /** Throws Fault 400 `too_many_chunks`. */
  add(chunk: Buffer): void {
    this.#count += 1
    this.#octets += chunk.length
    if (this.#count <= always + this.#octets / eachAbove) return
    throw new Fault(
      'invalid_request',
      `The body comes in more than ${always} chunks of less than ${eachAbove} bytes. Send it in larger ones, or with Content-Length.`,
      { code: tooManyChunks },
    )
  }
}
