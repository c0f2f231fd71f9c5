import { createHash, hash, randomBytes } from 'node:crypto'
import { type Reader, sql } from '../store/database.ts'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * Creates a key: `pbx_`, 43 base62 characters (256 bits) and 6 of checksum, so that secret scanners can recognize one. The checksum is not
 * used for authentication.
 */
export function newKey(): string {
  const body = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)
  return `pbx_${body}${checksum(body)}`
}

/** The stored hash of a key, or of the token of a session or link: its SHA-256 (256 random bits need no slow hash). */
export function keyHash(key: string): string {
  return hash('sha256', key, 'base64url')
}

function checksum(body: string): string {
  const digest = createHash('sha256').update(`pbx_${body}`).digest()
  return base62(BigInt(digest.readUIntBE(0, 4)), 6)
}

function base62(number: bigint, length: number): string {
  let text = ''
  for (let rest = number; text.length < length; rest /= 62n) text = digits[Number(rest % 62n)] + text
  return text
}

/** The id of this key unless it is revoked; the lookup does not count as a use. */
export async function idOfKey(reader: Reader, key: string): Promise<string | undefined> {
  const row = await reader.get<{ id: string }>(sql`SELECT id FROM api_keys WHERE hash = ${keyHash(key)} AND revoked_at IS NULL`)
  return row?.id
}
