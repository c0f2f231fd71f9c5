import { invalid } from '../core/fault.ts'

/** 12 bytes nonce, at least one of ciphertext, 16 of tag. */
const shortest = 29
const longest = 8192

/**
 * The bytes of a card's encrypted data. Throws Fault for anything but canonical base64 (RFC 4648 4) of 29 bytes to 8 KiB, and for
 * unencrypted data: text, or bytes that contain a card number.
 */
export function bytesOf(encryptedData: string): Buffer {
  const bytes = Buffer.from(encryptedData, 'base64')
  if (bytes.length < shortest || bytes.length > longest || bytes.toString('base64') !== encryptedData) {
    throw invalid(
      'encrypted_data',
      'encrypted_data must be base64, with its padding, of 29 bytes (12 nonce, ciphertext, 16 tag) to 8 KiB.',
      'invalid_value',
    )
  }
  if (isText(bytes) || holdsCardNumber(bytes.toString('latin1'))) {
    throw invalid('encrypted_data', 'encrypted_data is not encrypted: encrypt it under your card key first.', 'not_encrypted')
  }
  return bytes
}

function isText(bytes: Buffer): boolean {
  try {
    // eslint-disable-next-line no-control-regex
    return !/[\u0000-\u0008\u000e-\u001f\u007f]/.test(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return false
  }
}

/** Finds 13 to 19 digits, possibly grouped, with a valid check digit (ISO/IEC 7812-1 annex B). */
function holdsCardNumber(text: string): boolean {
  return [...text.matchAll(/\d(?:[ -]?\d){12,18}/g)].some(([number]) => isLuhn(number.replaceAll(/\D/g, '')))
}

function isLuhn(digits: string): boolean {
  let sum = 0
  for (let place = 0; place < digits.length; place += 1) {
    const value = Number(digits.at(-1 - place)) * (place % 2 === 0 ? 1 : 2)
    sum += value > 9 ? value - 9 : value
  }
  return sum % 10 === 0
}
