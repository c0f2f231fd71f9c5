import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Encryption of secrets on disk: AES-256-GCM under the box's master key. The context binds a sealed value to its place, so that one copied to another
 * row does not open.
 */
export class Seal {
  readonly #master: Buffer
  readonly #sealing: KeyObject

  constructor(master: Buffer) {
    this.#master = master
    this.#sealing = createSecretKey(this.key('seal'))
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
    if (bytes.length < 28) throw new Error('A sealed value is truncated.')
    const decipher = createDecipheriv('aes-256-gcm', this.#sealing, bytes.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(bytes.subarray(-16))
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
  }
}

/** A column whose values are sealed, so that they can all be sealed anew when the master key changes. */
export interface SealedColumn {
  table: string
  column: string
  /** The columns of the primary key of `table`. */
  key: readonly string[]
  /** The source of the rows, when their context needs another table: `keys JOIN domains ON …`. */
  from?: string
  /** The column is text: what is sealed is kept in base64. */
  base64?: true
  /** An SQL condition for the rows, when not all. */
  only?: string
  /** SQL that removes them after the loss of the master key and leaves the box usable; by default the value is removed, or its row. */
  lost?: string
  /** The context that binds a value to its row. */
  context: (row: Record<string, unknown>) => string
}

/** Compares two MACs of any length, in constant time where their lengths are equal. */
export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right)
}

const keyObjects = new WeakMap<Uint8Array, KeyObject>()

/** HMAC-SHA-256 of the texts, one after the other. The bytes of a key must not change afterwards. */
export function mac(key: KeyObject | Uint8Array, ...texts: readonly (string | Uint8Array)[]): Buffer {
  const hmac = createHmac('sha256', key instanceof Uint8Array ? keyObject(key) : key)
  for (const text of texts) hmac.update(text)
  return hmac.digest()
}

/** Caches key objects: Node would import the bytes of a key for every use, at several times the cost of the HMAC. */
function keyObject(key: Uint8Array): KeyObject {
  const known = keyObjects.get(key) ?? createSecretKey(key)
  keyObjects.set(key, known)
  return known
}

/**
 * The master key of the box: 32 random bytes in `master.key` (mode 0600), made when there is none and none is `expected`.
 * Throws a sentence when the file is missing although there was one, is not a key, or is another's or readable by others.
 */
export function masterKey(directory: string, expected = false): Buffer {
  const file = join(directory, 'master.key')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  if (!isThere(file)) {
    if (expected) throw new Error(`${file} is missing, although this box had a master key. ${restore}`)
    makeKey(file)
  }
  return readKey(file)
}

/** Throws a sentence when this user may not see it: what cannot be looked at is not missing. */
function isThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    const who = `user ${process.geteuid?.() ?? 'of this process'}`
    throw new Error(`${file} cannot be read by ${who}: ${(error as Error).message}.`, { cause: error })
  }
}

const restore =
  'Restore it from a backup, or provide it (master_key_file, or the systemd credential master.key): without it the encrypted values cannot be read.'

/**
 * The key in a file of the box, which no other user may read or change; a `given` file may belong to any user, and be readable by its group. Throws a
 * sentence with the file's name.
 */
export function readKey(file: string, given = false): Buffer {
  const handle = openSync(file, 'r')
  try {
    const stat = fstatSync(handle)
    // systemd lets the service read its credentials by an access list, which shows as bits of the group
    if (stat.mode & (given ? 0o007 : 0o077)) {
      const mode = (stat.mode & 0o777).toString(8)
      throw new Error(`${file} can be read by users other than its owner (mode ${mode}); set it to 0600.`)
    }
    if (!given && stat.uid !== 0 && stat.uid !== process.geteuid?.()) {
      throw new Error(
        `${file} belongs to another user (${stat.uid}), who can read and replace it; change its owner to this user (chown).`,
      )
    }
    const text = stat.isFile() && stat.size < 1000 ? readFileSync(handle, 'utf8').trim() : ''
    const key = Buffer.from(text, 'base64')
    if (key.length !== 32 || key.toString('base64') !== text)
      throw new Error(`${file} is not a master key: it must contain 32 bytes in base64. ${restore}`)
    return key
  } finally {
    closeSync(handle)
  }
}

/** Creates a key file, complete or not at all if the process is killed. Never replaces a file. */
export function makeKey(file: string): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  const handle = openSync(draft, 'wx', 0o600)
  try {
    // all of it, or an Error: a single write may be cut short
    writeFileSync(handle, `${randomBytes(32).toString('base64')}\n`)
    fsyncSync(handle)
    linkSync(draft, file)
  } finally {
    closeSync(handle)
    unlinkSync(draft)
  }
  syncFolder(dirname(file))
}

/** Forces the names in a directory to disk. */
export function syncFolder(directory: string): void {
  const folder = openSync(directory, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
