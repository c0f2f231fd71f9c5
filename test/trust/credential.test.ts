import { createLocalJWKSet, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { anotherAccount, somebody } from './accounts.ts'

test('a credential is a Verifiable Credential that the published keys verify, for a day', async () => {
  const clock = new HeldClock(Date.UTC(2026, 10, 20, 10, 5, 0, 700))
  const box = await appliance({}, clock)
  const ada = await somebody(box.call, 'Ada')
  const { status, body } = await box.call('POST', `/v1/identities/${ada.id}/reputation/credential`)
  expect([status, body]).toEqual([200, { credential: expect.any(String) as string, expires_at: '2026-11-21T10:05:00.000Z' }])

  const issuer = `did:web:127.0.0.1%3A${new URL(box.url).port}`
  const keys = await box.call<Parameters<typeof createLocalJWKSet>[0]>('GET', '/.well-known/jwks.json', undefined, { key: null })
  const known = createLocalJWKSet(keys.body)
  const verify = (at: number) =>
    jwtVerify(body.credential as string, known, { issuer, typ: 'vc+jwt', algorithms: ['EdDSA'], currentDate: new Date(at) })
  const { payload, protectedHeader } = await verify(clock.now())
  expect(protectedHeader).toEqual({ alg: 'EdDSA', typ: 'vc+jwt', cty: 'vc', kid: keys.body.keys[0]!.kid })
  expect(payload).toEqual({
    '@context': ['https://www.w3.org/ns/credentials/v2', 'https://www.w3.org/ns/credentials/undefined-terms/v2'],
    type: ['VerifiableCredential', 'ReputationCredential'],
    issuer,
    validFrom: '2026-11-20T10:05:00.000Z',
    validUntil: '2026-11-21T10:05:00.000Z',
    credentialSubject: {
      id: ada.agent.did,
      email: ada.email,
      handle: 'ada',
      reputation: { score: 0.5, tier: 'bronze', updated_at: '2026-11-20T10:05:00.700Z' },
    },
    iss: issuer,
    sub: ada.agent.did,
    iat: Date.UTC(2026, 10, 20, 10, 5) / 1000,
    nbf: Date.UTC(2026, 10, 20, 10, 5) / 1000,
    exp: Date.UTC(2026, 10, 21, 10, 5) / 1000,
  })
  await expect(verify(Date.UTC(2026, 10, 21, 10, 6))).rejects.toThrow('exp')
  const [head, , signature] = (body.credential as string).split('.')
  const forged = { ...payload, credentialSubject: { id: ada.agent.did, reputation: { score: 1, tier: 'platinum' } } }
  const other = `${head}.${Buffer.from(JSON.stringify(forged)).toString('base64url')}.${signature}`
  await expect(jwtVerify(other, known, { currentDate: new Date(clock.now()) })).rejects.toThrow('signature')
  // it says something of an agent, not that it is the agent who shows it
  expect((await box.call('POST', '/v1/verify/token', { token: body.credential })).body).toMatchObject({
    valid: false,
    reason: 'wrong_type',
  })
  expect((await box.call('POST', '/v1/trust/evaluate', { token: body.credential })).body).toMatchObject({ decision: 'deny' })
})

test('an identity without an agent is named by its URL; a suspended one, and another account’s, gets none', async () => {
  const box = await appliance()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const issue = (call = box.call) => call('POST', `/v1/identities/${bob.id}/reputation/credential`)
  const { body } = await issue()
  const payload = JSON.parse(Buffer.from((body.credential as string).split('.')[1]!, 'base64url').toString())
  expect(payload.credentialSubject).toMatchObject({ id: `${box.url}/v1/identities/${bob.id}`, email: bob.email })
  expect((await issue(await anotherAccount(box))).status).toBe(404)
  await box.call('PATCH', `/v1/identities/${bob.id}`, { status: 'suspended' })
  const refused = await issue()
  expect([refused.status, refused.body.error['code']]).toEqual([409, 'identity_suspended'])
})
