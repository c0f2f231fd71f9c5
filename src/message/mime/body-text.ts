import { isUtf8 } from 'node:buffer'

/** Characters that are kept of each body. */
export const textLimit = 5 * 1024 * 1024

/** Lines that are read of a message, and of all its bodies once they are decoded: the time for a text grows with them, and its memory. */
export const maxLines = 1_200_000

/** Bytes of all bodies of a message: a character has four at most in UTF-8. */
const maxOctets = 4 * textLimit

const [lf, cr] = [0x0a, 0x0d]

/** Cuts the decoded bodies of a message where together they are too long: a few bytes of base64 may be thousands of lines. */
export class TextLimit {
  isExceeded = false
  #octets = maxOctets
  #lines = maxLines

  /** What may be read of these bytes. */
  take(octets: Buffer): Buffer {
    let end = Math.min(octets.length, this.#octets)
    for (let at = octets.indexOf(lf); at !== -1 && at < end; at = octets.indexOf(lf, at + 1)) if (--this.#lines < 0) end = at
    this.#octets -= end
    if (end === octets.length) return octets
    this.isExceeded = true
    return octets.subarray(0, end)
  }
}

/** Decodes bytes as UTF-8 with LF line ends. Not by replace(), which takes a hundred times the memory for a text of nothing but line ends. */
export function unixText(bytes: Buffer): string {
  if (!bytes.includes(cr)) return bytes.toString('utf8')
  const kept = Buffer.allocUnsafe(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] !== cr || bytes[at + 1] !== lf) kept[length++] = bytes[at]!
  }
  return kept.toString('utf8', 0, length)
}

/** True for the charset of a part, `false` for none, that leaves open what bytes above 127 are. */
export function isUndeclared(charset: string | false | undefined): boolean {
  return !charset || /^us-?ascii$/i.test(charset)
}

/** The bytes of a text without a charset as UTF-8: those that are not are Windows-1252, as for browsers (whatwg.org, Encoding). */
export function guessedUtf8(octets: Buffer, isCut: boolean): Buffer {
  return isUtf8Text(octets, isCut) ? octets : Buffer.from(windows1252.decode(octets))
}

const windows1252 = new TextDecoder('windows-1252')

/** True if bytes are UTF-8; of a text that `isCut` the last character may be incomplete. */
export function isUtf8Text(bytes: Buffer, isCut: boolean): boolean {
  return isUtf8(isCut ? withoutLastCharacter(bytes) : bytes)
}

/** Bytes without the last character of UTF-8 that is no ASCII, if they end in one. */
function withoutLastCharacter(bytes: Buffer): Buffer {
  let end = bytes.length
  while (end > 0 && end > bytes.length - 3 && (bytes[end - 1]! & 0xc0) === 0x80) end -= 1
  return end > 0 && bytes[end - 1]! >= 0xc0 ? bytes.subarray(0, end - 1) : bytes.subarray(0, end)
}
