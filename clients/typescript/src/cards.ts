import { fromBase64, parsed, toBase64, utf8 } from './bytes.ts'
import { PillarboxError } from './errors.ts'

/** What a card is used with; more fields are kept as they are. */
export interface CardDetails {
  /** Digits alone. */
  number: string
  exp_month: number
  exp_year: number
  security_code?: string | undefined
  [name: string]: unknown
}

/** 32 bytes that never leave you, or their base64. Without it nobody can read the cards. */
export type CardKey = Uint8Array | string

/** A new card key, in base64. Keep it where the box cannot read it. */
export function newCardKey(): string {
  return toBase64(crypto.getRandomValues(new Uint8Array(32)))
}

/** AES-256-GCM: base64 of a fresh nonce of 12 bytes, the ciphertext and the tag of 16 bytes, as `encrypted_data` is stored. */
export async function encryptCard(cardKey: CardKey, details: object): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await keyFrom(cardKey), utf8(JSON.stringify(details)))
  return toBase64(new Uint8Array([...iv, ...new Uint8Array(sealed)]))
}

/** Throws PillarboxError, code `card_unreadable`, when it was encrypted under another key, or changed. */
export async function decryptCard(cardKey: CardKey, encryptedData: string): Promise<CardDetails> {
  const key = await keyFrom(cardKey)
  try {
    const bytes = fromBase64(encryptedData)
    const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: bytes.slice(0, 12) }, key, bytes.slice(12))
    return parsed(opened) as CardDetails
  } catch (cause) {
    throw new PillarboxError('The card was encrypted under another card key, or changed since.', 'card_unreadable', { cause })
  }
}

/** By the first digits (ISO/IEC 7812). */
export function brandOf(number: string): string {
  return brands.find(([pattern]) => pattern.test(number))?.[1] ?? 'other'
}

const brands: [RegExp, string][] = [
  [/^4/, 'visa'],
  [/^(5[1-5]|2[2-7])/, 'mastercard'],
  [/^3[47]/, 'amex'],
  [/^(6011|64|65)/, 'discover'],
  [/^35/, 'jcb'],
  [/^3[068]/, 'diners'],
  [/^62/, 'unionpay'],
]

function keyFrom(cardKey: CardKey) {
  const bytes = typeof cardKey === 'string' ? fromBase64(cardKey) : new Uint8Array(cardKey)
  if (bytes.length !== 32) {
    throw new PillarboxError(`A card key has 32 bytes, not ${bytes.length}. newCardKey() makes one.`, 'bad_card_key', {
      param: 'cardKey',
    })
  }
  return crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt'])
}
