import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** A message as it is written: its fields without the line end of each, and its body. Latin-1 stands for the bytes. */
export interface Letter {
  fields: string[]
  body: string
}

export interface Key {
  algorithm: 'rsa' | 'ed25519'
  privateKey: KeyObject
  /** The `p=` of its record. */
  published: string
}

export type Tag = [name: string, value: string]

export function rsaKey(modulusLength: number): Key {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength })
  return { algorithm: 'rsa', privateKey, published: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') }
}

export function ed25519Key(): Key {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const published = publicKey.export({ type: 'spki', format: 'der' }).subarray(12).toString('base64')
  return { algorithm: 'ed25519', privateKey, published }
}

export function bytesOf({ fields, body }: Letter): Buffer {
  return Buffer.from(`${fields.map((field) => `${field}\r\n`).join('')}\r\n${body}`, 'latin1')
}

/** The hash of a body (RFC 6376 3.4.3 and 3.4.4). */
export function bodyHash(body: string, canonicalization: string, hash: string, length?: number): string {
  const isRelaxed = canonicalization.split('/')[1] === 'relaxed'
  const lines = body.split('\r\n').map((line) => (isRelaxed ? line.replaceAll(/[ \t]+/g, ' ').replace(/ $/, '') : line))
  while (lines.at(-1) === '') lines.pop()
  const canonical = lines.map((line) => `${line}\r\n`).join('') || (isRelaxed ? '' : '\r\n')
  return createHash(hash).update(canonical.slice(0, length), 'latin1').digest('base64')
}

/** Signs the fields that `h=` names, and the signature's own field, whose value of `b=` is empty (RFC 6376 3.7). */
export function signature({ fields }: Letter, own: string, { h, c, a }: Record<'h' | 'c' | 'a', string>, key: Key): string {
  const isRelaxed = c.split('/')[0] === 'relaxed'
  const left = [...fields]
  const signed = h.split(':').flatMap((name) => {
    const at = left.findLastIndex((field) => nameOf(field) === name.trim().toLowerCase())
    return at < 0 ? [] : left.splice(at, 1)
  })
  const text = [...signed, own].map((field) => (isRelaxed ? relaxed(field) : field)).join('\r\n')
  return signedText(text, a, key)
}

/** Signs an ARC chain up to the field of this seal (RFC 8617 5.1.1); `sets` are those before it and its own, without the seal. */
export function seal(sets: readonly string[], own: string, a: string, key: Key): string {
  return signedText([...sets, own].map(relaxed).join('\r\n'), a, key)
}

function signedText(text: string, algorithm: string, key: Key): string {
  const bytes = Buffer.from(text, 'latin1')
  if (key.algorithm === 'ed25519')
    return sign(null, createHash('sha256').update(bytes).digest(), key.privateKey).toString('base64')
  return sign(algorithm.endsWith('sha1') ? 'sha1' : 'sha256', bytes, key.privateKey).toString('base64')
}

/** RFC 6376 3.4.2. */
function relaxed(field: string): string {
  const value = field.slice(field.indexOf(':') + 1)
  return `${nameOf(field)}:${value
    .replaceAll('\r\n', '')
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/^ | $/g, '')}`
}

/** The name of a field in lower case. */
export function nameOf(field: string): string {
  return field.slice(0, field.indexOf(':')).trim().toLowerCase()
}

/** The tags of a field or a record, as written; a repeated one with its last value. */
export function tagsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .replaceAll('\r\n', '')
      .split(';')
      .map((tag): Tag => {
        const at = tag.indexOf('=')
        return [tag.slice(0, Math.max(0, at)).trim(), tag.slice(at + 1).trim()]
      }),
  )
}
