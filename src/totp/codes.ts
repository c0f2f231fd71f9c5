import { createGuardrails, generateSync } from 'otplib'

/** How codes are made of a secret (RFC 6238). */
export interface Recipe {
  algorithm: 'SHA1' | 'SHA256' | 'SHA512'
  digits: number
  /** Seconds for which one code holds. */
  period: number
}

/** Most octets a secret may have. */
export const longestSecret = 1024

// what a service gave out is used as it is; by itself otplib refuses the usual 10 octets
const guardrails = createGuardrails({ MIN_SECRET_BYTES: 1, MAX_SECRET_BYTES: longestSecret })

const hashes = { SHA1: 'sha1', SHA256: 'sha256', SHA512: 'sha512' } as const

/** The code of a moment in milliseconds. */
export function codeAt(secret: Uint8Array, { algorithm, digits, period }: Recipe, now: number): string {
  return generateSync({ secret, guardrails, algorithm: hashes[algorithm], digits, period, epoch: Math.floor(now / 1000) })
}

/** How much longer the code of a moment holds, in milliseconds: more than 0, at most the period. */
export function timeLeft(period: number, now: number): number {
  return period * 1000 - (now % (period * 1000))
}
