import { createGuardrails, generateSync } from 'otplib'
import { trimEnd } from '../core/text.ts'

/** The parameters of the codes (RFC 6238). */
export interface Recipe {
  algorithm: 'SHA1' | 'SHA256' | 'SHA512'
  digits: number
  /** Seconds for which one code is valid. */
  period: number
}

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

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Characters a group may end after (RFC 4648 6): other lengths hold no whole number of bytes, so one was lost. */
const groupEnds = new Set([0, 2, 4, 5, 7])

/**
 * Decodes base32 as people copy it: in either case, with spaces, dashes or padding; undefined when it is invalid, empty, or truncated.
 * Surplus bits of the last character are ignored: many services choose random characters, not bytes.
 */
export function readBase32(text: string): Buffer | undefined {
  const compact = trimEnd(text.replace(/[\s-]/g, ''), '=')
  // before the case is changed: some letters of other alphabets would become ASCII
  if (!/^[A-Za-z2-7]{2,}$/.test(compact) || !groupEnds.has(compact.length % 8)) return undefined
  const characters = compact.toUpperCase()
  const bytes = Buffer.alloc(Math.floor((characters.length * 5) / 8))
  let bits = 0
  let count = 0
  let place = 0
  for (const character of characters) {
    bits = ((bits << 5) | alphabet.indexOf(character)) & 0xfff
    count += 5
    if (count < 8) continue
    count -= 8
    bytes[place++] = (bits >> count) & 0xff
  }
  return bytes
}
