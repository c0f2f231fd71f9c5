/** Chunks that anything may come in. */
const always = 16_384

/** Octets for each chunk beyond those. */
const eachAbove = 512

/** What is too much, after "it came in" and the like. */
export const tooManyChunks = `more than ${always} chunks of less than ${eachAbove} bytes`

/** Counts the chunks that one body comes in: the work on each, and the objects made of it, weigh far more than an octet does. */
export class Chunks {
  #count = 0
  #octets = 0

  /** Answers whether that is still few enough. */
  add(chunk: Uint8Array): boolean {
    this.#count += 1
    this.#octets += chunk.length
    return this.#count <= always + this.#octets / eachAbove
  }
}
