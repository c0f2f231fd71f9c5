import { randomBytes } from 'node:crypto'
import type { Seal } from '../core/seal.ts'

/** A new signing secret: `whsec_` and base64 of 32 random bytes. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Texts of a webhook that must not lie open on disk. Each is bound to its webhook. */
export class Sealed {
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal
  }

  write(webhookId: string, text: string): Buffer {
    return this.#seal.seal(Buffer.from(text), webhookId)
  }

  read(webhookId: string, sealed: Uint8Array): string {
    return this.#seal.open(sealed, webhookId).toString('utf8')
  }
}
