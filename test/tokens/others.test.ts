import { describe, expect, test } from 'vitest'
import type { OutsideDial } from '../../src/net/outside.ts'
import { accountKey } from '../support/account-key.ts'
import { appliance } from '../support/appliance.ts'
import { authority, type Authority } from '../support/authority.ts'
import { HeldClock } from '../support/held-clock.ts'
import { IssuerHost, methodOf } from '../support/issuer-host.ts'
import { newKey, type TestKey, tokenOf } from '../support/tokens.ts'

const audience = 'https://shop.example.com'

/** A box that may reach loopback and believes the authority, and another issuer with an agent there. */
async function scene(trusted?: Authority) {
  trusted ??= await authority()
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8', PILLARBOX_FETCH__CA_FILE: trusted.caFile }, clock)
  const host = await IssuerHost.start(trusted)
  const key = newKey()
  const did = host.did('v1:agents:ada')
  host.publish(did, key)
  const token = (changes: Record<string, unknown> = {}, sub = did, by: TestKey = key): string =>
    host.token(by, sub, changes, clock.now())
  const verify = async (text: string) => (await box.call('POST', '/v1/verify/token', { token: text, audience })).body
  const reasonOf = async (text: string): Promise<unknown> => (await verify(text))['reason']
  return { box, clock, host, key, did, token, verify, reasonOf }
}

test('the agent of another box is known by its DID document, and nothing of it is made up', async () => {
  const { token, verify, did, host } = await scene()
  const text = token({ email: 'ceo@example.com', reputation: { score: 1, tier: 'platinum' }, handle: 'ada' })
  expect(await verify(text)).toEqual({
    valid: true,
    reason: null,
    message: null,
    temporary: false,
    claims: expect.objectContaining({ sub: did, email: 'ceo@example.com' }) as unknown,
    identity: null,
    agent: { did, id: null, handle: null, display_name: null },
    reputation: null,
  })
  expect(host.asked).toEqual(['/v1/agents/ada/did.json'])
})

test('the document of the box speaks for subjects without a DID, and for no others', async () => {
  const { token, host, key, verify } = await scene()
  host.publish(host.did(), key)
  expect(await verify(token({}, host.did('v1:agents:other')))).toMatchObject({ valid: false, reason: 'unknown_subject' })
  host.asked.length = 0
  expect(await verify(token({}, 'ident_1'))).toMatchObject({ valid: true, identity: null, agent: null })
  expect(await verify(token({}, host.did()))).toMatchObject({ valid: true, agent: { did: host.did() } })
  expect(host.asked).toEqual(['/.well-known/did.json'])
})

describe('nobody speaks for others', () => {
  test('a DID of another host than the issuer is refused, and neither is asked', async () => {
    const { token, host, reasonOf } = await scene()
    const port = new URL(host.origin).port
    const foreign = [
      'did:web:victim.example:v1:agents:ada',
      'did:web:127.0.0.1:v1:agents:ada',
      `did:web:127.0.0.1%3A${Number(port) - 1}:v1:agents:ada`,
      `did:web:localhost%3A${port}:v1:agents:ada`,
      `did:web:127.0.0.1%3a${port}:v1:agents:ada`,
      `did:web:127.0.0.1%3A${port}%2Fx:v1:agents:ada`,
      `did:web:ada%40127.0.0.1%3A${port}:v1`,
      `did:web:127.0.0.1%3A${port}:v1:..:x`,
      `did:web:127.0.0.1%3A${port}:v1:%2E%2E:x`,
      `did:web:127.0.0.1%3A${port}:v1::x`,
      `did:web:127.0.0.1%3A${port}:`,
      `did:web:127.0.0.1%3A${port}/v1/agents/ada`,
      `did:web:127.0.0.1%3A${port}:v1:agents:ada#a-key`,
      `did:web:127.0.0.1%3A${port}:v1:agents:ada?x`,
      `did:WEB:127.0.0.1%3A${port}:v1:agents:ada`,
      `did:key:${newKey().multibase}`,
      'did:web:',
      'did:',
    ]
    for (const sub of foreign) expect([sub, await reasonOf(token({}, sub))]).toEqual([sub, 'wrong_subject'])
    expect(host.asked).toEqual([])
  })

  test('an issuer that is no https origin is refused, and not asked', async () => {
    const { token, host, reasonOf } = await scene()
    const bare = host.origin.slice('https://'.length)
    const issuers = [
      `http://${bare}`,
      `${host.origin}/`,
      `${host.origin}/x`,
      `${host.origin}?x`,
      `https://user@${bare}`,
      `HTTPS://${bare}`,
      `https://127.1:${bare.split(':')[1]}`,
      bare,
      `file:///etc/passwd`,
      `did:web:${bare}`,
      '',
    ]
    for (const iss of issuers) expect([iss, await reasonOf(token({ iss }))]).toEqual([iss, 'wrong_issuer'])
    expect(host.asked).toEqual([])
  })

  test('a token that is no good anyway asks nobody', async () => {
    const { token, host, clock, reasonOf } = await scene()
    const now = clock.now() / 1000
    expect(await reasonOf(token({ aud: 'https://other.example' }))).toBe('wrong_audience')
    expect(await reasonOf(token({ iat: now - 400, nbf: now - 400, exp: now - 100 }))).toBe('expired')
    expect(await reasonOf(token({ exp: now + 901 }))).toBe('lifetime_too_long')
    expect(host.asked).toEqual([])
  })

  test('an attacker who has a document and a key of their own is the attacker', async () => {
    const { token, host, did, key, reasonOf } = await scene()
    const attacker = newKey()
    // their own document at their own place says that it is the victim's
    host.publish(host.did('attacker'), attacker, { id: did })
    expect(await reasonOf(token({}, host.did('attacker'), attacker))).toBe('issuer_invalid')
    // their key, the victim's name
    expect(await reasonOf(token({}, did, attacker))).toBe('bad_signature')
    expect(await reasonOf(token({}, did, { ...attacker, kid: 'another' }))).toBe('unknown_key')
    expect(await reasonOf(token({}, did, key))).toBeNull()
  })
})

describe('a key is one that the document has for statements', () => {
  const cases: [string, (did: string, key: TestKey) => Record<string, unknown>, string | null][] = [
    [
      'named relative to the document',
      (did, key) => ({ verificationMethod: [{ ...methodOf(did, key), id: '#a-key' }], assertionMethod: ['#a-key'] }),
      null,
    ],
    ['as a Multikey', (did, key) => ({ verificationMethod: [multikey(did, key)] }), null],
    ['embedded', (did, key) => ({ verificationMethod: [], assertionMethod: [methodOf(did, key)] }), null],
    ['listed alone, without a list', (did) => ({ assertionMethod: `${did}#a-key` }), null],
    ['not listed', () => ({ assertionMethod: [] }), 'unknown_key'],
    ['without any list', () => ({ assertionMethod: undefined }), 'unknown_key'],
    ['listed for signing in only', (did) => ({ assertionMethod: undefined, authentication: [`${did}#a-key`] }), 'unknown_key'],
    ['listed under the name of another', () => ({ assertionMethod: ['did:web:victim.example#a-key'] }), 'unknown_key'],
    [
      'of another controller',
      (did, key) => ({ verificationMethod: [{ ...methodOf(did, key), controller: 'did:web:victim.example' }] }),
      'unknown_key',
    ],
    [
      'without a controller',
      (did, key) => ({ verificationMethod: [{ ...methodOf(did, key), controller: undefined }] }),
      'unknown_key',
    ],
    ['there twice', (did, key) => ({ verificationMethod: [methodOf(did, key), methodOf(did, newKey())] }), 'unknown_key'],
    [
      'of a type that is none for it',
      (did, key) => ({ verificationMethod: [{ ...methodOf(did, key), type: 'X25519KeyAgreementKey2020' }] }),
      'unknown_key',
    ],
    ['for encryption', (did, key) => ({ verificationMethod: [withJwk(did, key, { use: 'enc' })] }), 'unknown_key'],
    ['of another algorithm', (did, key) => ({ verificationMethod: [withJwk(did, key, { alg: 'HS256' })] }), 'unknown_key'],
    [
      'a secret that both know',
      (did, key) => ({ verificationMethod: [withJwk(did, key, { kty: 'oct', k: key.x })] }),
      'unknown_key',
    ],
    ['of another curve', (did, key) => ({ verificationMethod: [withJwk(did, key, { crv: 'X25519' })] }), 'unknown_key'],
    ['cut short', (did, key) => ({ verificationMethod: [withJwk(did, key, { x: key.x.slice(1) })] }), 'unknown_key'],
    [
      'two keys in one',
      (did, key) => ({ verificationMethod: [{ ...methodOf(did, key), publicKeyMultibase: newKey().multibase }] }),
      'unknown_key',
    ],
    ['in no form at all', () => ({ verificationMethod: 'x', assertionMethod: { id: 7 } }), 'unknown_key'],
  ]
  test.each(cases)('%s', async (_, changes, reason) => {
    const { token, host, did, key, reasonOf } = await scene()
    host.publish(did, key, changes(did, key))
    expect(await reasonOf(token())).toBe(reason)
  })
})

test('a token may name its key as the whole DID URL that the document lists, and no key of another', async () => {
  const { token, host, did, key, reasonOf } = await scene()
  const by = (kid: string): TestKey => ({ ...key, kid })
  host.publish(did, key, { verificationMethod: [withJwk(did, key, { kid: key.kid })] })
  const spelled = [key.kid, `${did}#${key.kid}`, `#${key.kid}`]
  for (const kid of spelled) expect([kid, await reasonOf(token({}, did, by(kid)))]).toEqual([kid, null])
  const port = new URL(host.origin).port
  const wrong = [
    `${did}#`,
    '#',
    did,
    `did:web:victim.example#${key.kid}`,
    `${did}##${key.kid}`,
    `did:web:127.0.0.1%3A${port}#${key.kid}`,
  ]
  for (const kid of wrong) expect([kid, await reasonOf(token({}, did, by(kid)))]).toEqual([kid, 'unknown_key'])
})

describe('what is fetched', () => {
  test('does not lead anywhere else', async () => {
    const { token, host, did, key, reasonOf } = await scene()
    host.publish(host.did('elsewhere'), key, { id: did })
    const places = [301, 302, 303, 307, 308].map((status) => {
      const place = `/moved/${status}/did.json`
      host.pages.set(place, { status, headers: { location: `${host.origin}/elsewhere/did.json` } })
      return place
    })
    for (const status of [301, 302, 303, 307, 308]) {
      expect([status, await reasonOf(token({}, host.did(`moved:${status}`)))]).toEqual([status, 'issuer_invalid'])
    }
    expect(host.asked).toEqual(places)
  })

  test.each<[string, Parameters<IssuerHost['pages']['set']>[1], string, boolean]>([
    ['is not there', { status: 404 }, 'unknown_subject', false],
    ['is gone', { status: 410 }, 'unknown_subject', false],
    ['is forbidden', { status: 403 }, 'issuer_invalid', false],
    ['is too large', { body: { more: 'x'.repeat(70_000) } }, 'issuer_invalid', false],
    ['is no JSON', { body: '<html>' }, 'issuer_invalid', false],
    ['is a list', { body: [] }, 'issuer_invalid', false],
    ['says something twice', { body: '{"id":"a","id":"b"}' }, 'issuer_invalid', false],
    ['has a different id', { body: { id: 'did:web:victim.example' } }, 'issuer_invalid', false],
    ['fails', { status: 500 }, 'issuer_unreachable', true],
    ['is busy', { status: 429 }, 'issuer_unreachable', true],
    ['never comes', { silent: true }, 'issuer_unreachable', true],
  ])('%s', async (_, page, reason, temporary) => {
    const { token, host, verify } = await scene()
    host.pages.set('/v1/agents/ada/did.json', page)
    expect(await verify(token())).toMatchObject({ valid: false, reason, temporary, claims: null })
  })

  test('is not packed', async () => {
    const { token, host, did, key, reasonOf } = await scene()
    host.publish(did, key, {}, { headers: { 'content-encoding': 'gzip' } })
    expect(await reasonOf(token())).toBe('issuer_invalid')
  })

  test('is kept as long as its server says, from one to five minutes', async () => {
    for (const [control, kept] of [
      ['max-age=0', 60],
      ['no-store', 60],
      ['public, max-age=120', 120],
      ['max-age=86400', 300],
    ] as const) {
      const { token, host, did, key, clock, reasonOf } = await scene()
      host.publish(did, key, {}, { headers: { 'cache-control': control } })
      expect(await reasonOf(token())).toBeNull()
      // the key is withdrawn there
      host.publish(did, newKey('new'))
      clock.advance((kept - 1) * 1000)
      expect([control, await reasonOf(token())]).toEqual([control, null])
      clock.advance(1000)
      expect([control, await reasonOf(token())]).toEqual([control, 'unknown_key'])
      expect(host.asked).toHaveLength(2)
    }
  }, 60_000)

  test('is asked for once by many, and a failure is not asked for again for half a minute', async () => {
    const { token, host, did, key, clock, reasonOf } = await scene()
    const texts = Array.from({ length: 20 }, (_, index) => token({ jti: String(index) }))
    expect(await Promise.all(texts.map(reasonOf))).toEqual(texts.map(() => null))
    expect(host.asked).toHaveLength(1)
    clock.advance(60_000)
    host.pages.set('/v1/agents/ada/did.json', { status: 503 })
    expect(await reasonOf(token())).toBe('issuer_unreachable')
    host.publish(did, key)
    clock.advance(29_999)
    expect(await reasonOf(token())).toBe('issuer_unreachable')
    clock.advance(1)
    expect(await reasonOf(token())).toBeNull()
    expect(host.asked).toHaveLength(3)
  })

  test('is fetched again when eight MiB of other keys were fetched since', async () => {
    const { token, host, did, key, reasonOf } = await scene()
    const lasting = { headers: { 'cache-control': 'max-age=300' } }
    host.publish(did, key, {}, lasting)
    expect([await reasonOf(token()), await reasonOf(token())]).toEqual([null, null])
    expect(host.asked).toHaveLength(1)
    // documents without keys take next to nothing, however long they are
    for (let number = 0; number < 200; number++) {
      const other = host.did(`empty:${number}`)
      host.publish(other, key, { verificationMethod: [], assertionMethod: [], more: 'x'.repeat(60_000) }, lasting)
      expect(await reasonOf(token({}, other))).toBe('unknown_key')
    }
    host.asked.length = 0
    expect([await reasonOf(token()), host.asked]).toEqual([null, []])
    for (let number = 0; number < 140; number++) {
      const other = host.did(`many:${number}`)
      const names = Array.from({ length: 250 }, (_, index) => `k${index}`)
      const assertionMethod = names.map((name) => methodOf(other, { ...key, kid: name }))
      host.publish(other, key, { verificationMethod: [], assertionMethod }, lasting)
      expect(await reasonOf(token({}, other, { ...key, kid: 'k7' }))).toBeNull()
    }
    host.asked.length = 0
    expect([await reasonOf(token()), host.asked]).toEqual([null, ['/v1/agents/ada/did.json']])
  }, 60_000)

  test('is asked for anew for the sake of a key that is not in it, twice a minute at most', async () => {
    const { token, host, did, key, clock, reasonOf } = await scene()
    host.publish(did, key, {}, { headers: { 'cache-control': 'max-age=300' } })
    expect(await reasonOf(token())).toBeNull()
    const fresh = newKey('fresh')
    // all keys there were replaced, and the one from before is kept here
    host.publish(did, fresh, {}, { headers: { 'cache-control': 'max-age=300' } })
    expect(await reasonOf(token({}, did, fresh))).toBe('unknown_key')
    expect(host.asked).toHaveLength(1)
    clock.advance(30_000)
    const many = Array.from({ length: 20 }, (_, index) => token({ jti: String(index) }, did, fresh))
    expect(await Promise.all(many.map(reasonOf))).toEqual(many.map(() => null))
    expect(host.asked).toHaveLength(2)
    expect(await reasonOf(token())).toBe('unknown_key')
    // a host that fails meanwhile takes nothing away
    clock.advance(30_000)
    host.pages.set('/v1/agents/ada/did.json', { status: 503 })
    for (let turn = 0; turn < 5; turn += 1) expect(await reasonOf(token({}, did, newKey(`guess-${turn}`)))).toBe('unknown_key')
    expect(await reasonOf(token({}, did, fresh))).toBeNull()
    expect(host.asked).toHaveLength(3)
  })

  test('one host that never answers keeps nobody from asking others', async () => {
    const trusted = await authority()
    const { token, host, did, clock, reasonOf } = await scene(trusted)
    const slow = await IssuerHost.start(trusted)
    const key = newKey()
    const answers: unknown[] = []
    const asking = Array.from({ length: 100 }, async (_, index) => {
      slow.pages.set(`/x/${index}/did.json`, { silent: true })
      answers.push(await reasonOf(slow.token(key, slow.did(`x:${index}`), {}, clock.now())))
    })
    await expect.poll(() => answers.length).toBeGreaterThanOrEqual(30)
    expect(await reasonOf(token({}, did))).toBeNull()
    expect(host.asked).toHaveLength(1)
    await Promise.all(asking)
    expect(answers).toEqual(asking.map(() => 'issuer_unreachable'))
  }, 30_000)

  test('accounts that ask for what never comes keep no other account from asking', async () => {
    const trusted = await authority()
    const { box, token, clock, reasonOf } = await scene(trusted)
    const key = newKey()
    const hosts = await Promise.all(Array.from({ length: 8 }, () => IssuerHost.start(trusted)))
    const opened = () => hosts.reduce((sum, { asked }) => sum + asked.length, 0)
    const answers: unknown[] = []
    /** Asks eight times of each host that never answers. */
    const asking = (by: string) =>
      hosts.flatMap((host) =>
        Array.from({ length: 8 }, async (_, index) => {
          const path = `${by.slice(-8)}/${index}`
          host.pages.set(`/${path}/did.json`, { silent: true })
          const text = host.token(key, host.did(path.replace('/', ':')), {}, clock.now())
          answers.push((await box.call('POST', '/v1/verify/token', { token: text, audience }, { key: by })).body['reason'])
        }),
      )
    const first = asking(accountKey(box))
    await expect.poll(() => answers.length).toBeGreaterThanOrEqual(48)
    await expect.poll(opened).toBe(16)
    expect(await reasonOf(token())).toBeNull()
    // four of them fill what there is for all
    const others = Array.from({ length: 4 }, () => asking(accountKey(box))).flat()
    await expect.poll(opened).toBeGreaterThanOrEqual(64)
    expect(await reasonOf(token({}, 'ident_1'))).toBe('unknown_subject')
    await Promise.all([...first, ...others])
    expect(new Set(answers)).toEqual(new Set(['issuer_unreachable']))
  }, 60_000)

  test('comes from a server whose certificate is believed', async () => {
    const clock = new HeldClock()
    const box = await appliance({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' }, clock)
    const host = await IssuerHost.start(await authority())
    const key = newKey()
    host.publish(host.did('x'), key)
    const token = host.token(key, host.did('x'), {}, clock.now())
    const { body } = await box.call('POST', '/v1/verify/token', { token, audience })
    expect(body).toMatchObject({ valid: false, reason: 'issuer_unreachable', temporary: true })
    expect(body['message']).toMatch(/certificate|UNABLE/i)
    expect(host.asked).toEqual([])
  })
})

test.each([
  '127.0.0.1',
  '10.0.0.1',
  '169.254.169.254',
  '192.168.1.1',
  '[::1]',
  '[fd00::1]',
  '[::ffff:127.0.0.1]',
  'localhost',
  'inner.test',
])('no connection is opened to %s for the sake of a token', async (host) => {
  const dialled: unknown[] = []
  const outsideDial: OutsideDial = (options, done) => {
    dialled.push(options.hostname)
    done(new Error('must not be called'), null)
  }
  const box = await appliance({}, undefined, { outsideDial })
  box.dns.a('inner.test', '10.1.2.3')
  const { host: name } = new URL(`https://${host}`)
  const iat = Math.floor(Date.now() / 1000)
  const key = newKey()
  for (const sub of [`did:web:${encodeURIComponent(name)}:v1:agents:x`, 'ident_1']) {
    const token = tokenFrom(`https://${name}`, sub, iat, key)
    const { body } = await box.call('POST', '/v1/verify/token', { token, audience })
    expect(body).toMatchObject({ valid: false, reason: 'issuer_unreachable', claims: null })
    expect(body['message']).toContain('is not a public address')
  }
  expect(dialled).toEqual([])
})

function tokenFrom(iss: string, sub: string, iat: number, key: TestKey): string {
  return tokenOf(key, { iss, sub, aud: audience, iat, nbf: iat, exp: iat + 300 })
}

function multikey(did: string, { kid, multibase }: TestKey): Record<string, unknown> {
  return { id: `${did}#${kid}`, type: 'Multikey', controller: did, publicKeyMultibase: multibase }
}

function withJwk(did: string, key: TestKey, changes: Record<string, unknown>): Record<string, unknown> {
  const method = methodOf(did, key)
  return { ...method, publicKeyJwk: { ...(method['publicKeyJwk'] as object), ...changes } }
}
