import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { join } from 'node:path'
import { openStore } from './open-store.ts'
import { MasterKey } from '../../src/core/seal/master-key.ts'
import { Seal } from '../../src/core/seal/seal.ts'
import { multikeyOf, privateKeyOf } from '../../src/tokens/jose.ts'
import { placeOf } from '../../src/tokens/signing-keys.ts'
import type { Appliance } from './appliance.ts'

/** A key as tests sign with it. */
export interface TestKey {
  kid: string
  /** Of the JWK. */
  x: string
  multibase: string
  secret: KeyObject
}

export function newKey(kid = 'a-key'): TestKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const x = publicKey.export({ format: 'jwk' }).x!
  return { kid, x, multibase: multikeyOf(Buffer.from(x, 'base64url')), secret: privateKey }
}

/** The key that a box signs with, taken out of its database: to say with it what the box never would. */
export function stolenKey(box: Appliance): TestKey {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true })
  const row = database.prepare(`SELECT kid, public_key, private_key FROM signing_keys WHERE state = 'active'`).get() as {
    kid: string
    public_key: string
    private_key: Uint8Array
  }
  database.close()
  const seal = new Seal(new MasterKey(join(box.directory, 'data-keys')).read(true))
  const { kid, public_key: x } = row
  return {
    kid,
    x,
    multibase: multikeyOf(Buffer.from(x, 'base64url')),
    secret: privateKeyOf(seal.open(row.private_key, placeOf(kid))),
  }
}

/** Base64url of a text, or of a value as JSON. */
export function encoded(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}

/** A token with this header and payload, as values or as the very text, signed by EdDSA whatever the header says. */
export function tokenOf(key: TestKey, payload: unknown, header: unknown = { alg: 'EdDSA', typ: 'JWT', kid: key.kid }): string {
  const said = `${encoded(header)}.${encoded(payload)}`
  return `${said}.${sign(null, Buffer.from(said), key.secret).toString('base64url')}`
}

/** What a token says, not checked. */
export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>
}
