import { randomBytes } from 'node:crypto'
import type { Seal } from '../core/seal.ts'

/** A new signing secret: `whsec_` and base64 of 32 random bytes. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Whether a given secret can be used: what bears our prefix must be base64 of 16 to 192 bytes, as receivers decode it. */
export function isSecret(text: string): boolean {
  if (!/^[\x20-\x7e]{16,256}$/.test(text)) return false
  if (!text.startsWith('whsec_')) return true
  const bytes = Buffer.from(text.slice(6), 'base64')
  return bytes.length >= 16 && bytes.toString('base64') === text.slice(6)
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
