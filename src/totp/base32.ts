import { trimEnd } from '../core/trim.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Characters a group may end after (RFC 4648 6): other lengths hold no whole number of bytes, so one was lost. */
const groupEnds = new Set([0, 2, 4, 5, 7])

/**
 * Decodes base32 as people copy it: in either case, with spaces, dashes or padding; undefined when it is invalid, empty, or cut off.
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
