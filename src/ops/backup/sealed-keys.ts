import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'
import * as z from 'zod'
import { type JsonBounds, parseForeign } from '../../core/json.ts'
import { refused } from './faults.ts'

const bounds: JsonBounds = { depth: 8, tokens: 100_000 }

/** Key files by their name below the key directory. */
export type KeyFiles = { name: string; content: Buffer }[]

const Base64 = z.base64().transform((text) => Buffer.from(text, 'base64'))

/** The cost is limited, so that a hostile archive cannot exhaust memory. */
const Sealed = z.strictObject({
  kdf: z.literal('scrypt'),
  n: z.literal([2 ** 14, 2 ** 15, 2 ** 16, 2 ** 17, 2 ** 18, 2 ** 19]),
  r: z.literal(8),
  p: z.int().min(1).max(4),
  salt: Base64,
  cipher: z.literal('aes-256-gcm'),
  nonce: Base64.refine(({ length }) => length === 12),
  tag: Base64.refine(({ length }) => length === 16),
  ciphertext: Base64,
})

const Plain = z.strictObject({
  files: z.array(
    z.strictObject({
      // no path outside of the target directory; other files that people put there do not make the keys invalid
      name: z
        .string()
        .max(4096)
        .refine((name) => name.split('/').every((part) => !['', '.', '..'].includes(part) && !part.includes('\0'))),
      content: Base64,
    }),
  ),
})

/** Encrypts keys with a passphrase (scrypt, RFC 7914; AES-256-GCM), bound to their backup. */
export async function sealKeys(files: KeyFiles, passphrase: string, context: string): Promise<string> {
  const cost = { n: 2 ** 17, r: 8, p: 1 }
  const [salt, nonce] = [randomBytes(16), randomBytes(12)]
  const cipher = createCipheriv('aes-256-gcm', await keyOf(passphrase, salt, cost), nonce).setAAD(Buffer.from(context))
  const plain = JSON.stringify({ files: files.map(({ name, content }) => ({ name, content: content.toString('base64') })) })
  const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
  const sealed = Object.entries({ salt, nonce, tag: cipher.getAuthTag(), ciphertext }).map(([name, bytes]) => [
    name,
    bytes.toString('base64'),
  ])
  return `${JSON.stringify({ kdf: 'scrypt', ...cost, cipher: 'aes-256-gcm', ...Object.fromEntries(sealed) }, null, 2)}\n`
}

/** Throws Fault `wrong_passphrase` when decryption fails. */
export async function openKeys(text: string, passphrase: string, context: string): Promise<KeyFiles> {
  const { salt, nonce, tag, ciphertext, ...cost } = understood(text, Sealed)
  const decipher = createDecipheriv('aes-256-gcm', await keyOf(passphrase, salt, cost), nonce, { authTagLength: 16 })
  decipher.setAAD(Buffer.from(context)).setAuthTag(tag)
  let plain: string
  try {
    plain = Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString()
  } catch (error) {
    throw refused(
      'The keys in the backup cannot be decrypted with this passphrase. Nothing was changed.',
      'wrong_passphrase',
      error,
    )
  }
  return understood(plain, Plain).files
}

/** The encryption context that binds keys to their backup. */
export function keysContext({ box_id, created_at }: { box_id: string; created_at: string }): string {
  return `pillarbox backup keys ${box_id} ${created_at}`
}

function understood<Shape extends z.ZodType>(text: string, shape: Shape): z.output<Shape> {
  try {
    return shape.parse(parseForeign(text, 'keys.json', bounds))
  } catch (error) {
    throw refused('The keys in the backup have an unknown format. Nothing was changed.', 'backup_damaged', error)
  }
}

function keyOf(passphrase: string, salt: Buffer, { n, r, p }: { n: number; r: number; p: number }): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const maxmem = 256 * n * r
    scrypt(passphrase.normalize('NFC'), salt, 32, { N: n, r, p, maxmem }, (error, key) => (error ? reject(error) : resolve(key)))
  })
}
