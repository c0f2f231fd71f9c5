import { createHash } from 'node:crypto'
import type { Row } from './side.ts'

/** The number of rows and a checksum of them that does not depend on their order: the sum of their SHA-256. */
export class RowSum {
  #count = 0
  readonly #sum = new Uint32Array(8)

  add(row: Row): void {
    const hash = createHash('sha256')
    for (const value of row) {
      if (value === null) hash.update('-')
      else if (value instanceof Uint8Array) hash.update(`b${value.length}:`).update(value)
      else if (typeof value === 'string') hash.update(`t${Buffer.byteLength(value)}:${value}`)
      else hash.update(`n${value}:`)
    }
    const digest = hash.digest()
    for (let index = 0; index < 8; index += 1) this.#sum[index]! += digest.readUInt32BE(4 * index)
    this.#count += 1
  }

  get rows(): number {
    return this.#count
  }

  /** In hex. */
  get checksum(): string {
    return [...this.#sum].map((part) => part.toString(16).padStart(8, '0')).join('')
  }
}
