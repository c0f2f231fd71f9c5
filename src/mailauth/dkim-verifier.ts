import { createHash, createPublicKey, type Hash, type KeyObject } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { createRequire } from 'node:module'
import { lruMapOfBytes } from '../core/memory.ts'
import { headEnd } from '../message/headers.ts'

export type Verified = Pick<Awaited<ReturnType<typeof dkimVerify>>, 'headers' | 'headerFrom' | 'results' | 'arc'>
type VerifierOptions = NonNullable<Parameters<typeof dkimVerify>[1]>
export type Resolver = NonNullable<VerifierOptions['resolver']>

interface KeyOptions {
  strict?: boolean
  hashAlgo?: string
}

interface FoundKey {
  publicKey: string | KeyObject
}

/** What the library asks of the hash of a body. */
interface BodyHash {
  setContentType(type: unknown): void
  update(body: Buffer): void
  digest(): string
  getMimeStructureStart(): number
}

/** The members of the library's class that are used here. */
interface Verifier extends Omit<Required<Verified>, 'headers'> {
  state: 'header' | 'body'
  headers: NonNullable<Verified['headers']>
  keyCache: unknown
  bodyHashes: Map<string, BodyHash>
  messageHeaders(headers: unknown): Promise<void>
  addBodyHash(canonicalization: string, algorithm: string, limit: unknown): string
  finalChunk(): Promise<void>
}

// the library has no types for these
const require = createRequire(import.meta.url)
const { DkimVerifier } = require('mailauth/lib/dkim/dkim-verifier.js') as {
  DkimVerifier: new (options: VerifierOptions) => Verifier
}
const { getPublicKey, parseHeaders, toALabel } = require('mailauth/lib/tools.js') as {
  getPublicKey: (
    type: string,
    name: string,
    bits: number | undefined,
    resolver: Resolver,
    options: KeyOptions,
  ) => Promise<FoundKey>
  parseHeaders: (header: Buffer) => Verifier['headers']
  toALabel: (name: string) => string
}

/**
 * Verifies the DKIM signatures and the newest ARC-Message-Signature of a message, as the library does in a stream. Here the body is hashed at once,
 * and what follows from the text of a key record is kept for the next message with that key. A message with bare LFs is left to the library, which
 * makes line ends of them.
 */
export async function verifySignatures(raw: Buffer, options: VerifierOptions & { resolver: Resolver }): Promise<Verified> {
  const start = headEnd(raw)
  if (start > raw.length || hasBareLf(raw)) return dkimVerify(raw, options)
  const verifier = new DkimVerifier(options)
  const keyCache = new KeyCache(options.resolver)
  verifier.keyCache = keyCache
  // where the checks of ARC look for it
  Object.defineProperty(verifier.arc, 'keyCache', { value: keyCache })
  const addBodyHash = verifier.addBodyHash.bind(verifier)
  verifier.addBodyHash = (canonicalization, algorithm, limit) => {
    if (typeof limit === 'number' || !/^sha(?:1|256)$/.test(algorithm)) return addBodyHash(canonicalization, algorithm, limit)
    const key = `${canonicalization}:${algorithm}:`
    if (!verifier.bodyHashes.has(key)) verifier.bodyHashes.set(key, new WholeBodyHash(canonicalization === 'relaxed', algorithm))
    return key
  }
  verifier.state = 'body'
  verifier.headers = parseHeaders(raw.subarray(0, start))
  await verifier.messageHeaders(verifier.headers)
  const body = raw.subarray(start)
  if (body.length > 0) for (const hash of verifier.bodyHashes.values()) hash.update(body)
  await verifier.finalChunk()
  return verifier
}

/** Public keys by the text of their record, which is in the value too, and what is asked of them. */
const keys = lruMapOfBytes<FoundKey>(4 * 1024 * 1024, (_key, text) => 2 * text.length + 1000)

/** Looks up keys: the DNS is asked for each message, and its answers are remembered there. */
class KeyCache {
  readonly resolver: Resolver

  constructor(resolver: Resolver) {
    this.resolver = resolver
  }

  async get(type: string, name: string, minBitLength?: number, options: KeyOptions = {}): Promise<FoundKey> {
    const answer = await this.resolver(toALabel(name), 'TXT')
    const text = JSON.stringify([answer[0], minBitLength, options])
    const known = keys.get(text)
    if (known !== undefined) return known
    requireKnownType(answer)
    const found = await getPublicKey(type, name, minBitLength, () => Promise.resolve(answer), options)
    // the library exports the key as PEM, which each use would read again
    const key = { ...found, publicKey: createPublicKey(found.publicKey) }
    keys.set(text, key)
    return key
  }
}

/** The object identifier rsaEncryption in DER (RFC 8017 A.1), which a public key has in its first octets. */
const rsaEncryption = Buffer.from('06092a864886f70d010101', 'hex')
/** Bytes of a key of 16,384 bits, the most that OpenSSL verifies with. */
const longestKey = 2112

/**
 * Throws for a record whose key is neither RSA nor Ed25519 (RFC 8301, RFC 8463). OpenSSL would decode any key before its type is looked at, and one
 * on an elliptic curve of its own takes an eighth of a second.
 */
function requireKnownType([record]: Awaited<ReturnType<Resolver>>): void {
  const rr = [record ?? []].flat().join('').replace(/\s+/g, '')
  for (const [, text = ''] of rr.matchAll(/(?:^|;)p=([^;]*)/g)) {
    const key = Buffer.from(text, 'base64')
    const isBareRsa = key[0] === 0x30 && key[key[1]! < 0x80 ? 2 : 2 + (key[1]! & 0x7f)] === 0x02
    const isKnown = key.length === 0 || key.length === 32 || isBareRsa || key.subarray(0, 32).includes(rsaEncryption)
    if (!isKnown || key.length > longestKey) throw Object.assign(new Error('Unknown key type'), { code: 'EINVALIDTYPE', rr })
  }
}

/** The hash of a body in canonical form (RFC 6376 3.4.3 and 3.4.4). All its line ends are CRLF. */
class WholeBodyHash implements BodyHash {
  readonly #isRelaxed: boolean
  readonly #hash: Hash
  #isEmpty = true

  constructor(isRelaxed: boolean, algorithm: string) {
    this.#isRelaxed = isRelaxed
    this.#hash = createHash(algorithm)
  }

  setContentType() {}

  update(body: Buffer) {
    const content = body.subarray(0, contentEnd(body, this.#isRelaxed))
    this.#isEmpty = content.length === 0
    if (!this.#isRelaxed) this.#hash.update(content)
    else for (const piece of relaxed(content)) this.#hash.update(piece)
  }

  digest(): string {
    // an empty body is one line end in the simple form, and nothing in the relaxed one
    if (!this.#isRelaxed || !this.#isEmpty) this.#hash.update('\r\n')
    return this.#hash.digest('base64')
  }

  getMimeStructureStart(): number {
    return 0
  }
}

/** The end of a body without the empty lines at its end, of which the relaxed form may have blanks. */
function contentEnd(body: Buffer, isRelaxed: boolean): number {
  let end = body.length
  while (end > 0) {
    const last = body[end - 1]
    if (last === lf) end -= 2
    else if (isRelaxed && (last === space || last === tab)) end -= 1
    else break
  }
  return end
}

/** A body with one space in place of each run of blanks, and none at the end of a line; in pieces, to need little memory. */
function* relaxed(body: Buffer): Generator<Buffer> {
  if (!hasBlanks(body)) {
    yield body
    return
  }
  for (let start = 0; start < body.length;) {
    const next = body.indexOf(lf, start + pieceLength)
    const end = next === -1 ? body.length : next + 1
    const piece = body.subarray(start, end)
    start = end
    if (!hasBlanks(piece)) yield piece
    else
      yield Buffer.from(
        piece
          .toString('latin1')
          .replace(/[ \t]+/g, ' ')
          .replaceAll(' \r\n', '\r\n'),
        'latin1',
      )
  }
}

function hasBlanks(text: Buffer): boolean {
  return text.includes('  ') || text.includes(tab) || text.includes(' \r\n')
}

function hasBareLf(raw: Buffer): boolean {
  for (let at = raw.indexOf(lf); at !== -1; at = raw.indexOf(lf, at + 1)) if (raw[at - 1] !== cr) return true
  return false
}

const [tab, lf, cr, space] = [0x09, 0x0a, 0x0d, 0x20]
const pieceLength = 1024 * 1024
