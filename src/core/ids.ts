import { typeidUnboxed } from 'typeid-js'

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

/** A TypeID: the prefix and 26 characters of a UUIDv7 (128 bits, 74 of them random). Opaque to clients. */
export function newId(prefix: IdPrefix): string {
  return typeidUnboxed(prefix)
}

const forms = Object.fromEntries(
  idPrefixes.map((prefix) => [prefix, new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`)]),
) as Record<IdPrefix, RegExp>

/** True if a text has the form of an id of this kind (not whether it exists). */
export function isId(prefix: IdPrefix, text: string): boolean {
  return forms[prefix].test(text)
}
