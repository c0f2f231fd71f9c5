import { expect, test } from 'vitest'
import { App } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { isId } from '../../src/core/ids.ts'
import { createLog } from '../../src/core/log.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { claimsOf } from '../support/tokens.ts'
import { verifiedDomain } from '../support/verified-domain.ts'

const shop = 'https://shop.example.com'

async function scene() {
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_PUBLIC_URL: 'https://box.example' }, clock)
  box.url = plainUrl(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', metadata: { team: 'secret' } })
  const issue = async (input: object = { audience: shop }, id: string = ada.id): Promise<string> => {
    const { status, body } = await box.call('POST', `/v1/identities/${id}/token`, input)
    expect(status).toBe(200)
    return body['token'] as string
  }
  const verify = async (token: string, audience: string | undefined = shop, key = box.key) =>
    (await box.call('POST', '/v1/verify/token', { token, audience }, { key })).body
  return { clock, box, ada, issue, verify }
}

test('a token says for whom it is, who its bearer is, and what of that is proved', async () => {
  const { box, ada, clock } = await scene()
  const { status, body, headers } = await box.call('POST', `/v1/identities/${ada.id}/token`, { audience: shop })
  const now = clock.now() / 1000
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(body['expires_at']).toBe(new Date((now + 300) * 1000).toISOString())
  const claims = claimsOf(body['token'] as string)
  expect(claims).toEqual({
    iss: box.app.publicUrl,
    sub: ada.id,
    aud: shop,
    iat: now,
    nbf: now,
    exp: now + 300,
    jti: expect.stringMatching(/^tok_/),
    email: ada.email,
    email_domain_verified: false,
    phone_number_verified: false,
    generation: 0,
    reputation: { score: expect.any(Number), tier: expect.any(String) },
  })
  expect(isId('tok', claims['jti'] as string)).toBe(true)
})

test('the subject is the DID of the agent where there is one', async () => {
  const { box, ada, issue, verify } = await scene()
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada.id, handle: 'ada', display_name: 'Ada L.' })
  const token = await issue()
  expect(claimsOf(token)).toMatchObject({ sub: agent.did, handle: 'ada' })
  expect(await verify(token)).toEqual({
    valid: true,
    reason: null,
    message: null,
    temporary: false,
    claims: claimsOf(token),
    identity: { id: ada.id, email: ada.email },
    agent: { did: agent.did, id: agent.id, handle: 'ada', display_name: 'Ada L.' },
    // as it is now: that a token was issued counts, a little later
    reputation: { score: expect.closeTo(0.5, 2) as number, tier: (claimsOf(token)['reputation'] as { tier: string }).tier },
  })
})

test('an address is called verified once the DNS of its domain is, a number of the loopback never', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  await verifiedDomain(box)
  const { body } = await box.call('POST', `/v1/identities/${ada.id}/token`)
  expect(claimsOf(body['token'] as string)).toMatchObject({ email_domain_verified: true, phone_number_verified: false })
})

test('without an audience a token is for this box, and is looked at as such', async () => {
  const { box, ada, issue } = await scene()
  const token = await issue({})
  expect(claimsOf(token)['aud']).toBe(box.app.publicUrl)
  expect((await box.call('POST', '/v1/verify/token', { token })).body['valid']).toBe(true)
  expect((await box.call('POST', '/v1/verify/token', { token, audience: shop })).body['reason']).toBe('wrong_audience')
  expect(claimsOf(await issue({ aud: shop }))['aud']).toBe(shop)
  const two = await box.call('POST', `/v1/identities/${ada.id}/token`, { aud: shop, audience: 'https://other.example' })
  expect(two.body.error).toMatchObject({ status: 400, param: 'aud' })
  for (const expires_in of [29, 901, 60.5]) {
    const wrong = await box.call('POST', `/v1/identities/${ada.id}/token`, { expires_in })
    expect(wrong.body.error).toMatchObject({ status: 400, param: 'expires_in' })
  }
  for (const expires_in of [30, 900]) {
    const claims = claimsOf(await issue({ expires_in }))
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(expires_in)
  }
})

test('a token is good for its time and half a minute, in which clocks may disagree', async () => {
  const { clock, issue, verify } = await scene()
  const token = await issue({ audience: shop, expires_in: 60 })
  clock.advance(89_000)
  expect((await verify(token))['valid']).toBe(true)
  clock.advance(1000)
  expect(await verify(token)).toMatchObject({
    valid: false,
    reason: 'expired',
    temporary: false,
    claims: claimsOf(token),
    identity: null,
    agent: null,
    reputation: null,
  })
})

test('all tokens of an identity are revoked at once, and one issued in the same moment after is good', async () => {
  const { box, ada, issue, verify } = await scene()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const [before, other] = [await issue(), await issue({ audience: shop }, bob.id)]
  // the clock stands still: all of this is one millisecond
  const { status, body } = await box.call('POST', `/v1/identities/${ada.id}/token/revoke`)
  expect([status, body['identity_id']]).toEqual([200, ada.id])
  const after = await issue()
  expect(await verify(before)).toMatchObject({ valid: false, reason: 'revoked' })
  expect((await verify(after))['valid']).toBe(true)
  expect((await verify(other))['valid']).toBe(true)
  await box.restart()
  box.url = plainUrl(box)
  expect(await verify(before)).toMatchObject({ valid: false, reason: 'revoked' })
  expect((await verify(after))['valid']).toBe(true)
})

test('tokens of a suspended identity do not verify while it is, and it gets none', async () => {
  const { box, ada, issue, verify } = await scene()
  const token = await issue()
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  expect(await verify(token)).toMatchObject({ valid: false, reason: 'suspended' })
  const refused = await box.call('POST', `/v1/identities/${ada.id}/token`)
  expect(refused.body.error).toMatchObject({ status: 409, code: 'identity_suspended' })
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'active' })
  expect((await verify(token))['valid']).toBe(true)
})

test('tokens of a deleted identity, or of a deleted agent by its DID, are of nobody', async () => {
  const { box, ada, issue, verify } = await scene()
  const plain = await issue()
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada.id })
  const named = await issue()
  await box.call('DELETE', `/v1/agents/${agent.id}`)
  expect(await verify(named)).toMatchObject({ valid: false, reason: 'unknown_subject' })
  expect((await verify(plain))['valid']).toBe(true)
  // another agent of the same identity is another
  await box.call('POST', '/v1/agents', { identity_id: ada.id })
  expect(await verify(named)).toMatchObject({ valid: false, reason: 'unknown_subject' })
  const again = await issue()
  expect((await verify(again))['valid']).toBe(true)
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  for (const token of [plain, again]) expect(await verify(token)).toMatchObject({ valid: false, reason: 'unknown_subject' })
  expect((await box.call('POST', `/v1/identities/${ada.id}/token`)).status).toBe(404)
})

test('whoever it was shown to learns no more of its bearer than it says', async () => {
  const { box, ada, issue, verify } = await scene()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const input = { label: 'bob', scopes: ['identities:read'], identity_id: bob.id }
  const { body: bound } = await box.call('POST', '/v1/api-keys', input)
  const seen = await verify(await issue(), shop, bound['key'] as string)
  expect(seen).toMatchObject({ valid: true, identity: { id: null, email: ada.email }, agent: null })
  expect(JSON.stringify(seen)).not.toContain('team')
})

test('whom a token is for may be spelled aud everywhere', async () => {
  const { box, ada } = await scene()
  const { body } = await box.call('POST', `/v1/identities/${ada.id}/token`, { aud: shop })
  const verify = async (input: object) => (await box.call('POST', '/v1/verify/token', { token: body['token'], ...input })).body
  expect([await verify({ aud: shop }), await verify({ aud: shop, audience: shop })]).toMatchObject([
    { valid: true },
    { valid: true },
  ])
  expect(await verify({ aud: 'https://other.example' })).toMatchObject({ valid: false, reason: 'wrong_audience' })
  expect(await verify({ aud: shop, audience: 'https://other.example' })).toMatchObject({ error: { status: 400, param: 'aud' } })
})

test('what is issued and revoked is told by events, the token itself by none', async () => {
  const { box, ada, issue } = await scene()
  const token = await issue()
  await box.call('POST', `/v1/identities/${ada.id}/token/revoke`)
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/events?limit=2`)
  const [revoked, issued] = body.data
  expect(issued).toMatchObject({
    type: 'token.issued',
    identity_id: ada.id,
    data: { id: claimsOf(token)['jti'], identity_id: ada.id, audience: shop },
  })
  expect(revoked).toMatchObject({ type: 'token.revoked', data: { identity_id: ada.id } })
  expect(JSON.stringify(body)).not.toContain(token.split('.')[2])
  expect(box.logged.join('\n')).not.toContain(token.split('.')[2])
})

test('a repeated call with the same Idempotency-Key gets the same token, which lies sealed', async () => {
  const { box, ada } = await scene()
  const once = { headers: { 'Idempotency-Key': 'once' } }
  const first = await box.call('POST', `/v1/identities/${ada.id}/token`, {}, once)
  const again = await box.call('POST', `/v1/identities/${ada.id}/token`, {}, once)
  expect(again.body).toEqual(first.body)
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/events?type=token.issued`)
  expect(body.data).toHaveLength(1)
})

test('a token outlives a rotation of the keys and a restart, and dies with their replacement', async () => {
  const { box, clock, issue, verify } = await scene()
  const token = await issue({ audience: shop, expires_in: 900 })
  clock.advance(601_000)
  expect((await box.call('POST', '/v1/signing-keys/rotate', { now: false })).status).toBe(200)
  const later = await issue()
  expect(header(later)['kid']).not.toBe(header(token)['kid'])
  for (const one of [token, later]) expect((await verify(one))['valid']).toBe(true)
  await box.restart()
  box.url = plainUrl(box)
  for (const one of [token, later]) expect((await verify(one))['valid']).toBe(true)
  expect((await box.call('POST', '/v1/signing-keys/rotate', { now: true })).status).toBe(200)
  for (const one of [token, later]) expect(await verify(one)).toMatchObject({ valid: false, reason: 'unknown_key', claims: null })
  expect((await verify(await issue()))['valid']).toBe(true)
})

test('a new master key seals the signing keys anew: tokens from before verify, and others are issued', async () => {
  const { box, issue, verify } = await scene()
  const before = await issue()
  await box.app.stop()
  const closed = await App.open(await loadConfig({ env: box.env, cwd: box.directory }), createLog('silent'))
  await closed.rotateMasterKey()
  await closed.stop()
  await box.restart()
  box.url = plainUrl(box)
  const after = await issue()
  expect(header(after)['kid']).toBe(header(before)['kid'])
  for (const one of [before, after]) expect((await verify(one))['valid']).toBe(true)
})

/** Where a box is reached whose public URL leads elsewhere. */
function plainUrl({ app }: Appliance): string {
  return `http://127.0.0.1:${app.httpAddresses.plain!.port}`
}

function header(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()) as Record<string, unknown>
}
