import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { verifiedDomain } from '../support/verified-domain.ts'

test('a key of any scope learns its rights and the identity that it is bound to', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: whole } = await box.call('GET', '/v1/whoami')
  expect(whole).toMatchObject({ key_id: expect.stringMatching(/^key_/), session_id: null, expires_at: null, identity: null })
  const expires_at = '2090-01-01T00:00:00.000Z'
  const input = { scopes: ['cards:read'], identity_id: ada.id, rate_limit: 30, expires_at }
  const { body: made } = await box.call('POST', '/v1/api-keys', input)
  const { status, body } = await box.call('GET', '/v1/whoami', undefined, { key: made['key'] as string })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    account_id: whole['account_id'],
    key_id: made.id,
    scopes: ['cards:read'],
    rate_limit: 30,
    expires_at,
    identity: { id: ada.id, email: 'ada@pillarbox.test', status: 'active' },
  })
  expect(JSON.stringify(body)).not.toContain(made['key'])
  expect((await box.call('GET', '/v1/whoami', undefined, { key: 'pb_wrong' })).status).toBe(401)
})

test('an identity says whether its mail can leave the box, why not, and whom to ask, as the refusal of a message does', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const reason = String(ada['cannot_send_outside_reason'])
  expect(ada['can_send_outside']).toBe(false)
  expect(reason).toMatch(/^pillarbox\.test is not verified.*Ask whoever runs this box/)
  const at = `/v1/identities/${ada.id}`
  const refused = await box.call('POST', `${at}/emails`, { to: 'bob@example.com', subject: 'Hello', body: 'Hello' })
  expect(refused.status).toBe(409)
  expect(refused.body.error).toMatchObject({ code: 'domain_not_verified', message: reason })
  await verifiedDomain(box)
  expect((await box.call('GET', at)).body).toMatchObject({ can_send_outside: true, cannot_send_outside_reason: null })
  const { body: suspended } = await box.call('PATCH', at, { status: 'suspended' })
  expect(suspended).toMatchObject({ can_send_outside: false, cannot_send_outside_reason: expect.stringContaining('suspended') })
})

test('a key that is bound to one identity reads that identity, and sees only it in the list', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const bound = async (...scopes: string[]) => ({
    key: (await box.call('POST', '/v1/api-keys', { scopes, identity_id: ada.id })).body['key'] as string,
  })
  const reader = await bound('identities:read')
  const own = await box.call('GET', `/v1/identities/${ada.id}`, undefined, reader)
  expect([own.status, own.body]).toMatchObject([200, { id: ada.id, email: 'ada@pillarbox.test', can_send_outside: false }])
  expect(own.body).toEqual((await box.call('GET', `/v1/identities/${ada.id}`)).body)
  for (const query of ['', '?query=bob', '?name=Bob', `?email=${bob['email']}`, '?offset=1']) {
    const { body } = await box.call('GET', `/v1/identities${query}`, undefined, reader)
    expect([query, body.data.map(({ id }) => id), body['has_more']]).toEqual([query, query === '' ? [ada.id] : [], false])
  }
  expect((await box.call('GET', `/v1/identities/${bob.id}`, undefined, reader)).body.error['status']).toBe(404)
  // the scope of the call is needed all the same; what the identity is, whoami says to every key
  const writer = await bound('messages:write')
  expect((await box.call('GET', `/v1/identities/${ada.id}`, undefined, writer)).body.error['code']).toBe('insufficient_scope')
  expect((await box.call('GET', '/v1/whoami', undefined, writer)).body['identity']).toMatchObject({ id: ada.id })
})

test('a key that is bound to an identity can suspend it, and not lift a suspension', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:write'], identity_id: ada.id })
  const change = async (input: object, given: { key: string } | undefined = { key: bound['key'] as string }) => {
    const { status, body } = await box.call('PATCH', `/v1/identities/${ada.id}`, input, given)
    return [status, body['status'] ?? [body.error['code'], body.error['param']]]
  }
  expect(await change({ status: 'active' })).toEqual([200, 'active'])
  expect(await change({ status: 'suspended' })).toEqual([200, 'suspended'])
  expect(await change({ status: 'active' })).toEqual([403, ['beyond_own', 'status']])
  expect(await change({ status: 'suspended', metadata: { note: 'x' } })).toEqual([200, 'suspended'])
  expect(await change({ status: 'active' }, { key: box.key })).toEqual([200, 'active'])
})
