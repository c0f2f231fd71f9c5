import { trimEnd } from '../core/trim.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Characters a group may end after (RFC 4648 6): others hold no whole number of octets, and one was lost. */
const resultWriter = new Set([0, 2, 4, 5, 7])

/**
 * The octets of base32 as people pass it on: in either case, with spaces, dashes or padding; undefined when it is none, empty, or cut off.
 * What is left of the last character beyond whole octets is not looked at: many services draw characters, not octets.
 */
export function readBase32(text: string): Buffer | undefined {
  const compact = trimEnd(text.replace(/[\s-]/g, ''), '=')
  // before the case is changed: some letters of other alphabets become ours by it
  if (!/^[A-Za-z2-7]{2,}$/.test(compact) || !resultWriter.has(compact.length % 8)) return undefined
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
