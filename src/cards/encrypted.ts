import { invalid } from '../core/fault.ts'

/** 12 bytes nonce, at least one of ciphertext, 16 of tag. */
const shortest = 29
const longest = 8192

/** Begins a text that is stored as bytes; no ciphertext begins so, but by a chance of 2^-128. */
const textMark = Buffer.from('f3c1a96d0b7e42588c04d9e2761fab35', 'hex')

/**
 * A card's encrypted data as it is stored: the bytes of base64 in its usual form (RFC 4648 4), and the text of any other after a mark, so that it
 * is answered as it was given: for URLs, without padding, with line breaks. Throws Fault for anything but base64 of 29 bytes to 8 KiB, and for bytes
 * that contain a card number in the clear.
 */
export function storedForm(encryptedData: string): Buffer {
  const bytes = bytesOf(encryptedData)
  if (!bytes || bytes.length < shortest || bytes.length > longest) {
    throw invalid(
      'encrypted_data',
      'encrypted_data must be base64 of 29 bytes (12 nonce, ciphertext, 16 tag) to 8 KiB.',
      'invalid_value',
    )
  }
  if (hasCardNumber(bytes.toString('latin1'))) {
    throw invalid('encrypted_data', 'encrypted_data is not encrypted: encrypt it under your card key first.', 'not_encrypted')
  }
  return bytes.toString('base64') === encryptedData ? bytes : Buffer.concat([textMark, Buffer.from(encryptedData)])
}

/** The encrypted data of a card as it was given. Earlier versions stored texts as texts. */
export function givenForm(stored: Uint8Array | string): string {
  if (typeof stored === 'string') return stored
  const bytes = Buffer.from(stored)
  const isText = bytes.subarray(0, textMark.length).equals(textMark)
  return isText ? bytes.subarray(textMark.length).toString() : bytes.toString('base64')
}

/** The bytes of base64 in one of its forms (RFC 4648 4 and 5); undefined for any other text. */
function bytesOf(text: string): Buffer | undefined {
  const digits = text.replaceAll(/[\r\n\t ]/g, '').replace(/={0,2}$/, '')
  for (const form of ['base64', 'base64url'] as const) {
    const bytes = Buffer.from(digits, form)
    if (bytes.toString(form).replace(/={0,2}$/, '') === digits) return bytes
  }
  return undefined
}

/**
 * Finds 13 to 19 digits, possibly grouped, with a valid check digit (ISO/IEC 7812-1 annex B). Not within other letters and digits, such as those of
 * an envelope in hexadecimal, and not times in milliseconds, which begin with 1 as no payment card does (annex A).
 */
function hasCardNumber(text: string): boolean {
  const numbers = text.matchAll(/(?<![\w+/])[2-9](?:[ -]?\d){12,18}(?![\w+/])/g)
  return [...numbers].some(([number]) => isLuhn(number.replaceAll(/\D/g, '')))
}

function isLuhn(digits: string): boolean {
  let sum = 0
  for (let place = 0; place < digits.length; place += 1) {
    const value = Number(digits.at(-1 - place)) * (place % 2 === 0 ? 1 : 2)
    sum += value > 9 ? value - 9 : value
  }
  return sum % 10 === 0
}
