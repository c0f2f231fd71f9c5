import { expect, test } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { authority, type Authority, overTls } from '../support/authority.ts'
import { HeldClock } from '../support/held-clock.ts'
import { claimsOf, stolenKey, tokenOf } from '../support/tokens.ts'

/** A box that is reached by HTTPS, may reach the other, and believes its certificate. */
async function secureBox(trusted: Authority, clock: HeldClock): Promise<{ box: Appliance; origin: string }> {
  const box = await appliance(
    { ...overTls(trusted), PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8', PILLARBOX_FETCH__CA_FILE: trusted.caFile },
    clock,
  )
  const origin = box.app.publicUrl
  // what is not about the other box is asked in the clear
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  return { box, origin }
}

/** Two boxes that have nothing in common, and an agent of the first. */
async function scene() {
  const trusted = await authority()
  const clock = new HeldClock()
  const there = await secureBox(trusted, clock)
  const here = await secureBox(trusted, clock)
  const { body: ada } = await there.box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: agent } = await there.box.call('POST', '/v1/agents', { identity_id: ada.id, handle: 'ada' })
  const issue = async (id: string = ada.id): Promise<string> => {
    const { body } = await there.box.call('POST', `/v1/identities/${id}/token`, { audience: here.origin, expires_in: 900 })
    return body['token'] as string
  }
  const verify = async (token: string) => (await here.box.call('POST', '/v1/verify/token', { token })).body
  return { clock, there, here, ada, agent, issue, verify }
}

test('two boxes know each other’s agents by HTTPS alone', async () => {
  const { there, agent, ada, issue, verify } = await scene()
  const token = await issue()
  expect(await verify(token)).toMatchObject({
    valid: true,
    claims: { iss: there.origin, sub: agent.did, handle: 'ada', email: ada.email },
    agent: { did: agent.did },
  })
  // and those that have no agent, for whom the box answers
  const { body: bob } = await there.box.call('POST', '/v1/identities', { name: 'Bob' })
  expect(await verify(await issue(bob.id))).toMatchObject({ valid: true, claims: { sub: bob.id }, agent: null })
})

test('one box cannot make tokens in the name of an agent of another', async () => {
  const { there, here, issue, verify } = await scene()
  const claims = claimsOf(await issue())
  const mallory = stolenKey(here.box)
  expect(await verify(tokenOf(mallory, claims))).toMatchObject({ valid: false, reason: 'unknown_key' })
  const asHere = tokenOf(mallory, { ...claims, iss: here.origin })
  expect(await verify(asHere)).toMatchObject({ valid: false, reason: 'unknown_subject' })
  // nor may the issuer be another than the host of the DID
  const { body } = await there.box.call('POST', '/v1/verify/token', { token: asHere, audience: here.origin })
  expect(body).toMatchObject({ valid: false, reason: 'wrong_subject' })
})

test('an agent that is suspended there is none here once its document has run out, and is one again', async () => {
  const { clock, there, ada, issue, verify } = await scene()
  const token = await issue()
  expect((await verify(token))['valid']).toBe(true)
  await there.box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  expect((await there.box.call('POST', '/v1/verify/token', { token, audience: claimsOf(token)['aud'] })).body['reason']).toBe(
    'suspended',
  )
  clock.advance(301_000)
  expect(await verify(token)).toMatchObject({ valid: false, reason: 'unknown_key' })
  await there.box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'active' })
  clock.advance(301_000)
  expect((await verify(token))['valid']).toBe(true)
})

test('an agent that is deleted there is none here once its document has run out', async () => {
  const { clock, there, agent, ada, issue, verify } = await scene()
  const [first, second] = [await issue(), await issue()]
  expect((await verify(first))['valid']).toBe(true)
  await there.box.call('DELETE', `/v1/agents/${agent.id}`)
  clock.advance(301_000)
  expect(await verify(first)).toMatchObject({ valid: false, reason: 'unknown_subject' })
  await there.box.call('DELETE', `/v1/identities/${ada.id}`)
  clock.advance(31_000)
  expect(await verify(second)).toMatchObject({ valid: false, reason: 'unknown_subject' })
})

test('keys that change there are followed here without a gap', async () => {
  const { clock, there, issue, verify } = await scene()
  const before = await issue()
  expect((await verify(before))['valid']).toBe(true)
  clock.advance(601_000)
  await verify(await issue())
  expect((await there.box.call('POST', '/v1/signing-keys/rotate', { now: false })).status).toBe(200)
  // the document that is kept here is from before, and has the key that signs now
  expect((await verify(await issue()))['valid']).toBe(true)
  expect((await verify(before))['valid']).toBe(true)
  const stale = await issue()
  expect((await there.box.call('POST', '/v1/signing-keys/rotate', { now: true })).status).toBe(200)
  clock.advance(301_000)
  expect(await verify(stale)).toMatchObject({ valid: false, reason: 'unknown_key' })
  expect((await verify(await issue()))['valid']).toBe(true)
})

test('a box that is away is told apart from one that says no', async () => {
  const { there, issue, verify } = await scene()
  const token = await issue()
  await there.box.app.stop()
  expect(await verify(token)).toMatchObject({ valid: false, reason: 'issuer_unreachable', temporary: true })
})
