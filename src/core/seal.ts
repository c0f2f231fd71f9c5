import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { closeSync, constants, fsyncSync, lstatSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * What must not lie open on disk: AES-256-GCM under the box's master key. The context binds a sealed value to its place,
 * so that one copied to another row does not open.
 */
export class Seal {
  readonly #master: Buffer
  readonly #sealing: Buffer

  constructor(master: Buffer) {
    this.#master = master
    this.#sealing = this.key('seal')
  }

  /** A 32-byte key of its own for one purpose (HKDF-SHA-256, RFC 5869). */
  key(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#master, Buffer.alloc(0), `pillarbox ${purpose}`, 32))
  }

  /** 12 bytes nonce, the ciphertext, 16 bytes tag. */
  seal(bytes: Uint8Array, context: string): Buffer {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#sealing, nonce)
    cipher.setAAD(Buffer.from(context))
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }

  /** Throws when the bytes were changed, belong to another context or were sealed under another master key. */
  open(sealed: Uint8Array, context: string): Buffer {
    const bytes = Buffer.from(sealed)
    const decipher = createDecipheriv('aes-256-gcm', this.#sealing, bytes.subarray(0, 12))
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(bytes.subarray(-16))
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
  }
}

/** Compares two MACs of any length without telling where they differ. */
export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right)
}

/** HMAC-SHA-256. */
export function mac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/**
 * The master key of the box: 32 random bytes in `master.key` (mode 0600), made when there is none.
 * Throws a sentence when the file is not a key, or readable by others than its owner.
 */
export function masterKey(directory: string): Buffer {
  const file = join(directory, 'master.key')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  try {
    const mode = lstatSync(file).mode & 0o777
    if (mode & 0o077) throw new Error(`${file} can be read by others than its owner (mode ${mode.toString(8)}); set it to 0600.`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    makeKey(file)
  }
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64')
  if (key.length !== 32)
    throw new Error(`${file} is not a master key: it must hold 32 bytes in base64. Restore it from a backup.`)
  return key
}

function makeKey(file: string): void {
  const handle = openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  writeSync(handle, `${randomBytes(32).toString('base64')}\n`)
  fsyncSync(handle)
  closeSync(handle)
  const folder = openSync(dirname(file), 'r')
  fsyncSync(folder)
  closeSync(folder)
}
