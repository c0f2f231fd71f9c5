import { createGuardrails, generateSync } from 'otplib'

/** The parameters of the codes (RFC 6238). */
export interface Recipe {
  algorithm: 'SHA1' | 'SHA256' | 'SHA512'
  digits: number
  /** Seconds for which one code is valid. */
  period: number
}

/** The longest secret in bytes. */
export const longestSecret = 1024

// secrets are used as services issue them; otplib's own minimum would reject the common 10 bytes
const guardrails = createGuardrails({ MIN_SECRET_BYTES: 1, MAX_SECRET_BYTES: longestSecret })

const hashes = { SHA1: 'sha1', SHA256: 'sha256', SHA512: 'sha512' } as const

/** The code at a time in milliseconds. */
export function codeAt(secret: Uint8Array, { algorithm, digits, period }: Recipe, now: number): string {
  return generateSync({ secret, guardrails, algorithm: hashes[algorithm], digits, period, epoch: Math.floor(now / 1000) })
}

/** The remaining validity of the current code, in milliseconds: above 0, at most the period. */
export function timeLeft(period: number, now: number): number {
  return period * 1000 - (now % (period * 1000))
}
