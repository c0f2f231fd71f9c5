import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Appliance, openAppliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { claimsOf, encoded, newKey, stolenKey, type TestKey, tokenOf } from '../support/tokens.ts'

/** What is said here is signed by the box's own key unless the attack is another one. */
let box: Appliance
let close: () => Promise<void>
let own: TestKey
let good: Record<string, unknown>
const clock = new HeldClock()
const now = clock.now() / 1000

beforeAll(async () => {
  ;({ box, close } = await openAppliance({}, clock))
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body } = await box.call('POST', `/v1/identities/${ada.id}/token`)
  good = claimsOf(body['token'] as string)
  own = stolenKey(box)
})
afterAll(() => close())

async function reasonOf(token: string): Promise<unknown> {
  const { status, body } = await box.call('POST', '/v1/verify/token', { token })
  expect(status).toBe(200)
  expect(body['valid']).toBe(body['reason'] === null)
  if (body['valid'] !== true) expect(body['message']).toMatch(/^[A-Z].{10,}\.$/s)
  return body['reason'] as unknown
}

test('what the tests say in the name of the box is believed as long as nothing is wrong with it', async () => {
  expect(await reasonOf(tokenOf(own, good))).toBeNull()
  expect(await reasonOf(tokenOf(own, good, { alg: 'EdDSA', kid: own.kid }))).toBeNull()
  expect(await reasonOf(tokenOf(own, { ...good, aud: ['https://a.example', good['aud']] }))).toBeNull()
  expect(await reasonOf(tokenOf(own, { ...good, iat: now + 30, nbf: now + 30 }))).toBeNull()
  expect(await reasonOf(tokenOf(own, { ...good, iat: now - 900 + 1, nbf: now - 900 + 1, exp: now + 1 }))).toBeNull()
})

describe('the algorithm is ours to choose', () => {
  test.each(['none', 'None', 'NONE', '', 'eddsa', 'Ed25519', 'ES256', 'RS256', 'HS256', 'EdDSA ', null, ['EdDSA']])(
    '%j',
    async (alg) => {
      expect(await reasonOf(tokenOf(own, good, headed(alg)))).toBe('unsupported_algorithm')
    },
  )

  test('none, without a signature', async () => {
    const said = `${encoded(headed('none'))}.${encoded(good)}`
    for (const token of [`${said}.`, said]) expect(await reasonOf(token)).toMatch(/malformed|unsupported_algorithm/)
  })

  test('HS256, keyed with the public key in all its forms', async () => {
    const said = `${encoded(headed('HS256'))}.${encoded(good)}`
    const jwk = (await box.call('GET', '/.well-known/jwks.json')).body as object
    for (const key of [own.x, Buffer.from(own.x, 'base64url'), own.multibase, JSON.stringify(jwk)]) {
      const mac = createHmac('sha256', key).update(said).digest('base64url')
      expect(await reasonOf(`${said}.${mac}`)).toBe('unsupported_algorithm')
    }
    // the same under the name of the right algorithm
    const renamed = `${encoded(headed('EdDSA'))}.${encoded(good)}`
    const mac = createHmac('sha512', own.x).update(renamed).digest('base64url')
    expect(await reasonOf(`${renamed}.${mac}`)).toBe('bad_signature')
  })

  test('another curve under the name of EdDSA', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const said = `${encoded(headed('EdDSA'))}.${encoded(good)}`
    const signature = sign('sha256', Buffer.from(said), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
    expect(await reasonOf(`${said}.${signature}`)).toBe('bad_signature')
  })
})

describe('the key is one that we published', () => {
  test.each([undefined, '', 'unknown', 7, null, '../../etc/passwd', "' OR 1=1 --", 'a'.repeat(300)])('kid %j', async (kid) => {
    expect(await reasonOf(tokenOf(own, good, { alg: 'EdDSA', typ: 'JWT', kid }))).toBe('unknown_key')
  })

  test('another key under our name', async () => {
    expect(await reasonOf(tokenOf({ ...newKey(), kid: own.kid }, good))).toBe('bad_signature')
  })

  test('the next key, which signs nothing yet', async () => {
    const { body } = await box.call<{ keys: { kid: string }[] }>('GET', '/.well-known/jwks.json', undefined, { key: null })
    expect(await reasonOf(tokenOf({ ...own, kid: body.keys[1]!.kid }, good))).toBe('unknown_key')
  })

  test.each(['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'enc'])('a header with %s', async (name) => {
    const attacker = newKey(own.kid)
    const value =
      { jwk: { kty: 'OKP', crv: 'Ed25519', x: attacker.x }, crit: ['exp'], b64: false }[name] ?? 'https://attacker.example/'
    for (const key of [attacker, own]) {
      const token = tokenOf(key, good, { alg: 'EdDSA', typ: 'JWT', kid: own.kid, [name]: value })
      expect(await reasonOf(token)).toBe('unsupported_header')
    }
  })
})

describe('what it says holds here and now', () => {
  test.each<[string, object]>([
    ['expired', { iat: now - 331, nbf: now - 331, exp: now - 30 }],
    ['issued_in_the_future', { iat: now + 31, nbf: now + 31 }],
    ['not_yet_valid', { nbf: now + 31 }],
    ['lifetime_too_long', { exp: now + 901 }],
    ['lifetime_too_long', { iat: now - 10, exp: now - 10 }],
    ['lifetime_too_long', { nbf: now - 900 }],
    ['wrong_audience', { aud: 'https://other.example' }],
    ['wrong_audience', { aud: [] }],
    ['wrong_audience', { aud: undefined }],
    ['wrong_audience', { aud: { toString: 'x' } }],
    ['malformed', { exp: undefined }],
    ['malformed', { iat: undefined }],
    ['malformed', { exp: String(now + 60) }],
    ['malformed', { exp: 1e300 }],
    ['malformed', { iat: -1 }],
    ['malformed', { nbf: null }],
    ['malformed', { sub: undefined }],
    ['malformed', { sub: '' }],
    ['malformed', { sub: 'x'.repeat(600) }],
    ['malformed', { iss: undefined }],
    ['malformed', { iss: ['https://a.example'] }],
    ['unknown_subject', { sub: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' }],
    ['unknown_subject', { sub: 'did:web:attacker.example:v1:agents:agent_01jd3v8m2ef1pbx9mz5k7q4w6a' }],
    ['revoked', { generation: 1 }],
    ['revoked', { generation: '0' }],
    ['revoked', { generation: undefined }],
  ])('%s: %j', async (reason, change) => {
    expect(await reasonOf(tokenOf(own, { ...good, ...change }))).toBe(reason)
  })

  test('what is signed for another purpose is no identity token', async () => {
    for (const typ of ['vc+jwt', 'at+jwt', 7, '']) {
      expect(await reasonOf(tokenOf(own, good, { alg: 'EdDSA', typ, kid: own.kid }))).toBe('wrong_type')
    }
  })
})

describe('one token has one form', () => {
  test('every changed character of a token is noticed', async () => {
    const token = tokenOf(own, good)
    for (let at = 0; at < token.length; at += 7) {
      const other = token[at] === 'A' ? 'B' : 'A'
      if (token[at] === '.') continue
      expect([at, await reasonOf(token.slice(0, at) + other + token.slice(at + 1))]).not.toEqual([at, null])
    }
  })

  test('a payload that was exchanged', async () => {
    const [header, , signature] = tokenOf(own, good).split('.')
    const other = encoded({ ...good, aud: good['aud'], email: 'ceo@example.com' })
    expect(await reasonOf(`${header}.${other}.${signature}`)).toBe('bad_signature')
  })

  test('members that are there twice, of which readers take another one each', async () => {
    const twice = JSON.stringify(good).replace('{', '{"sub":"ident_01jd3v8m2ef1pbx9mz5k7q4w6a",')
    expect(await reasonOf(tokenOf(own, twice))).toBe('malformed')
    const header = `{"alg":"none","alg":"EdDSA","typ":"JWT","kid":${JSON.stringify(own.kid)}}`
    expect(await reasonOf(tokenOf(own, good, header))).toBe('malformed')
    const escaped = JSON.stringify(good).replace('{', '{"\\u0073ub":"x",')
    expect(await reasonOf(tokenOf(own, escaped))).toBe('malformed')
  })

  test('spellings of base64 that decode to the same', async () => {
    const token = tokenOf(own, good)
    const [header, payload, signature] = token.split('.') as [string, string, string]
    const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    // 64 octets leave four bits of the last character unused
    const loose = signature.slice(0, -1) + last[last.indexOf(signature.at(-1)!) ^ 1]!
    const spellings = [
      `${token}=`,
      `${header}.${payload}.${loose}`,
      ` ${token}`,
      `${token}\n`,
      `${header}..${signature}`,
      `${token}.`,
    ]
    for (const spelling of spellings) expect([spelling, await reasonOf(spelling)]).toEqual([spelling, 'malformed'])
  })

  test('what is no token at all', async () => {
    for (const text of ['x', '..', '...', 'a.b', 'a.b.c.d.e', '{}', encoded('null'), `${encoded('[]')}.${encoded('[]')}.AAAA`]) {
      expect([text, await reasonOf(text)]).toEqual([text, 'malformed'])
    }
    const nested = `${'['.repeat(40)}${']'.repeat(40)}`
    expect(await reasonOf(tokenOf(own, `{"sub":${nested}}`))).toBe('malformed')
    expect(await reasonOf(tokenOf(own, `{"__proto__":{"sub":"x"}}`))).toBe('malformed')
  })

  test('what is too long', async () => {
    expect(await reasonOf(tokenOf(own, { ...good, more: 'x'.repeat(8192) }))).toBe('malformed')
    const { body } = await box.call('POST', '/v1/verify/token', { token: 'x'.repeat(65_537) })
    expect(body.error).toMatchObject({ status: 400, param: 'token' })
  })

  test('a signature of another length', async () => {
    const token = tokenOf(own, good)
    const said = token.slice(0, token.lastIndexOf('.'))
    for (const octets of [1, 63, 65, 128]) {
      expect(await reasonOf(`${said}.${Buffer.alloc(octets, 1).toString('base64url')}`)).toBe('bad_signature')
    }
  })
})

function headed(alg: unknown): object {
  return { alg, typ: 'JWT', kid: own.kid }
}
