import { join } from 'node:path'
import { calculateJwkThumbprint, compactVerify, importJWK } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import { Seal } from '../../src/core/seal/seal.ts'
import { prepare } from '../../src/store/migrate.ts'
import { sql } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { keyOfMultikey, multikeyOf } from '../../src/tokens/jose.ts'
import { SigningKeys } from '../../src/tokens/signing-keys.ts'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { HeldClock } from '../support/held-clock.ts'

const day = 86_400_000
const log = createLog('silent')

async function keyring() {
  const file = join(folder(), 'box.db')
  prepare(file, false)
  const database = await SqliteDatabase.open(file, log)
  onTestFinished(() => database.close())
  const clock = new HeldClock()
  const seal = new Seal(Buffer.alloc(32, 7))
  const open = (): SigningKeys => new SigningKeys({ database, clock, seal, log, rotateEvery: () => 90 * day })
  const soon = (): number => Math.floor(clock.now() / 1000) + 300
  return { database, clock, open, keys: open(), soon }
}

test('a Multikey is what the published example says, and nothing else reads as one', () => {
  // did:key method specification, test vectors
  const known = 'z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvktH'
  const octets = keyOfMultikey(known)!
  expect(octets).toHaveLength(32)
  expect(multikeyOf(octets)).toBe(known)
  for (const text of [
    '',
    'z',
    known.slice(1),
    `${known}1`,
    known.replace('k', 'j'),
    known.replace('V', '0'),
    `z6Mk${'z'.repeat(44)}`,
  ]) {
    expect([text, keyOfMultikey(text)]).toEqual([text, undefined])
  }
})

test('a box publishes the key that signs and the next one, named by their thumbprints, and they outlive a restart', async () => {
  const box = await appliance()
  const first = await box.call('GET', '/.well-known/jwks.json', undefined, { key: null })
  expect(first.headers.get('content-type')).toBe('application/json; charset=utf-8')
  const { keys } = first.body as never as { keys: Record<string, string>[] }
  expect(keys).toHaveLength(2)
  for (const key of keys) {
    expect(key).toEqual({ kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: expect.any(String), alg: 'EdDSA', use: 'sig' })
    expect(await calculateJwkThumbprint(key)).toBe(key.kid)
  }
  await box.restart()
  const again = await box.call('GET', '/.well-known/jwks.json', undefined, { key: null })
  expect(again.body).toEqual({ keys })
})

test('the keys are for everybody: any origin, to be kept for five minutes and asked for again by their tag', async () => {
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: 'https://app.example.com' })
  const ask = (headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${box.url}/.well-known/jwks.json`, { method, headers })
  const { headers } = await ask({ Origin: 'https://app.example.com' })
  expect(Object.fromEntries(headers)).toMatchObject({
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'cache-control': 'public, max-age=300',
    'x-content-type-options': 'nosniff',
  })
  expect(headers.get('access-control-allow-credentials')).toBeNull()
  const tag = headers.get('etag')!
  const known = await ask({ 'If-None-Match': `"other", W/${tag}` })
  expect([known.status, await known.text(), known.headers.get('etag')]).toEqual([304, '', tag])
  expect((await ask({ 'If-None-Match': '"other"' })).status).toBe(200)
  const head = await ask({}, 'HEAD')
  expect([head.status, head.headers.get('etag')]).toEqual([200, tag])
})

test('a rotation lets the published next key sign, and the one before verifies until all it signed has expired', async () => {
  const { keys, clock, database, soon } = await keyring()
  const [active, next] = await keys.published()
  const signed = await keys.sign({ exp: soon() })
  clock.advance(day)
  expect(await keys.rotate()).toBe(next!.kid)
  const after = await keys.published()
  expect(after.map(({ kid }) => kid)).toEqual([next!.kid, expect.any(String), active!.kid])
  await compactVerify(signed, await importJWK(after[2]!.jwk, 'EdDSA'))
  await compactVerify(await keys.sign({ exp: soon() }), await importJWK(after[0]!.jwk, 'EdDSA'))
  // what signed is destroyed at once
  expect(await database.all(sql`SELECT kid FROM signing_keys WHERE private_key IS NULL`)).toEqual([{ kid: active!.kid }])
  clock.advance(day)
  expect(await keys.find(active!.kid)).toBe(active!.jwk.x)
  clock.advance(60_000)
  expect(await keys.find(active!.kid)).toBeUndefined()
  expect((await keys.published()).map(({ kid }) => kid)).not.toContain(active!.kid)
  await keys.tend()
  expect(await database.all(sql`SELECT kid FROM signing_keys WHERE kid = ${active!.kid}`)).toEqual([])
})

test('the next key verifies nothing before it signs', async () => {
  const { keys } = await keyring()
  const [active, next] = await keys.published()
  expect([await keys.find(active!.kid), await keys.find(next!.kid)]).toEqual([active!.jwk.x, undefined])
})

test('keys change by themselves when their time is over, once', async () => {
  const { keys, clock } = await keyring()
  const [active, next] = await keys.published()
  clock.advance(90 * day - 1)
  await keys.tend()
  expect((await keys.published())[0]!.kid).toBe(active!.kid)
  clock.advance(1)
  await keys.tend()
  await keys.tend()
  expect((await keys.published())[0]!.kid).toBe(next!.kid)
  expect(await keys.published()).toHaveLength(3)
})

test('a key that nobody could have heard of does not sign yet', async () => {
  const { keys, clock } = await keyring()
  await keys.ensure()
  await expect(keys.rotate()).rejects.toThrow(/it can be used in 10 min.*--now/s)
  clock.advance(600_000)
  await keys.rotate()
  await expect(keys.rotate()).rejects.toThrow('published too recently')
})

test('replaced because others may have them, all keys are gone at once, the published next one too', async () => {
  const { keys, soon } = await keyring()
  const before = (await keys.published()).map(({ kid }) => kid)
  await keys.sign({ exp: soon() })
  const kid = await keys.replaceAll()
  const after = await keys.published()
  expect(after).toHaveLength(2)
  expect(after.filter((key) => before.includes(key.kid))).toEqual([])
  expect(after[0]!.kid).toBe(kid)
  await compactVerify(await keys.sign({ exp: soon() }), await importJWK(after[0]!.jwk, 'EdDSA'))
})

test('first keys are made once, however many ask for them', async () => {
  const { keys, database } = await keyring()
  await Promise.all([keys.ensure(), keys.published(), keys.sign({ exp: 1 }), keys.ensure()])
  expect(await database.all(sql`SELECT state FROM signing_keys ORDER BY seq`)).toEqual([{ state: 'active' }, { state: 'next' }])
})

test('nothing is signed that could outlive the publication of its key', async () => {
  const { keys, clock } = await keyring()
  const now = Math.floor(clock.now() / 1000)
  await expect(keys.sign({})).rejects.toThrow('must expire')
  await expect(keys.sign({ exp: now + 86_401 })).rejects.toThrow('must expire')
  await keys.sign({ exp: now + 86_400 })
})
