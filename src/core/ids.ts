import { randomFillSync } from 'node:crypto'

/** The type prefixes of all ids of the API. */
const idPrefixes = [
  'ident',
  'email',
  'sms',
  'phone',
  'card',
  'totp',
  'login',
  'thread',
  'evt',
  'whk',
  'dlv',
  'key',
  'dom',
  'alias',
  'agent',
  'tok',
  'link',
  'txn',
  'sup',
  'acct',
  'rep',
  'sess',
  'person',
  'inv',
  'job',
  'hold',
  'req',
] as const
export type IdPrefix = (typeof idPrefixes)[number]

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Ten bits as two characters. */
const pairs = Array.from({ length: 1024 }, (_, bits) => alphabet.charAt(bits >> 5) + alphabet.charAt(bits & 31))

/** The random bytes of ids, drawn for many at once. */
const random = Buffer.alloc(10 * 200)
let drawn = random.length

/**
 * A TypeID (its specification, version 0.3): the prefix and 26 characters, base 32, of a UUIDv7 (RFC 9562 5.7): 48 bits of milliseconds, 74 of them
 * random. Opaque to clients.
 */
export function newId(prefix: IdPrefix): string {
  if (drawn === random.length) {
    randomFillSync(random)
    drawn = 0
  }
  const at = drawn
  drawn += 10
  // the version is the first of these bits, the variant those from the seventeenth on
  random[at] = (random[at]! & 0x0f) | 0x70
  random[at + 2] = (random[at + 2]! & 0x3f) | 0x80
  const now = Date.now()
  const time = pairs[Math.floor(now / 2 ** 40)]! + eight(now)
  return `${prefix}_${time}${eight(random.readUIntBE(at, 5))}${eight(random.readUIntBE(at + 5, 5))}`
}

/** The last 40 bits of a number as eight characters. */
function eight(bits: number): string {
  // shifts are of 32 bits
  const high = Math.floor(bits / 2 ** 20)
  return pairs[(high >> 10) & 1023]! + pairs[high & 1023]! + pairs[(bits >> 10) & 1023]! + pairs[bits & 1023]!
}

const forms = Object.fromEntries(
  idPrefixes.map((prefix) => [prefix, new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`)]),
) as Record<IdPrefix, RegExp>

/** True if a text has the form of an id of this kind (not whether it exists). */
export function isId(prefix: IdPrefix, text: string): boolean {
  return forms[prefix].test(text)
}
