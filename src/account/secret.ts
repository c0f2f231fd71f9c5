import { createHash, randomBytes } from 'node:crypto'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * A new key: `pbx_`, 43 base62 characters (256 bits) and 6 of checksum, so that secret scanners can tell one.
 * The checksum is never what admits.
 */
export function newKey(): string {
  const body = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)
  return `pbx_${body}${checksum(body)}`
}

/** What the store keeps of a key: its SHA-256 (256 random bits need no slow hash). */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('base64url')
}

function checksum(body: string): string {
  const hash = createHash('sha256').update(`pbx_${body}`).digest()
  return base62(BigInt(hash.readUIntBE(0, 4)), 6)
}

function base62(number: bigint, length: number): string {
  let text = ''
  for (let rest = number; text.length < length; rest /= 62n) text = digits[Number(rest % 62n)] + text
  return text
}
