/** 12 bytes nonce, at least one of ciphertext, 16 of tag. */
const shortest = 29
const longest = 8192

/** Whether a text is base64 as every encoder writes it (RFC 4648 4), of 29 bytes to 8 KiB. */
export function isBlob(text: string): boolean {
  if (text.length > Math.ceil(longest / 3) * 4) return false
  const bytes = Buffer.from(text, 'base64')
  return bytes.length >= shortest && bytes.length <= longest && bytes.toString('base64') === text
}

/** Whether somebody forgot to encrypt: the bytes are text, or hold what can only be a card number. */
export function isReadable(text: string): boolean {
  const bytes = Buffer.from(text, 'base64')
  return isText(bytes) || holdsCardNumber(bytes.toString('latin1'))
}

function isText(bytes: Buffer): boolean {
  try {
    // eslint-disable-next-line no-control-regex
    return !/[\u0000-\u0008\u000e-\u001f\u007f]/.test(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return false
  }
}

/** 13 to 19 digits, perhaps in groups, with a right check digit (ISO/IEC 7812-1 annex B). */
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
