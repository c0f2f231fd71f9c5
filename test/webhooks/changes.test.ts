import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }

test('what happens to webhooks and keys is told to whoever may read the account, without any secret', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const { body: watch } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/watch`, events: ['*'] })
  const input = { url: `${sink.url}/hook`, events: ['email.received'], headers: { 'X-Token': 'header-canary' } }
  const { body: hook } = await box.call('POST', '/v1/webhooks', input)
  await box.call('PATCH', `/v1/webhooks/${hook['id']}`, { active: false })
  const { body: turned } = await box.call('POST', `/v1/webhooks/${hook['id']}/secret/rotate`)
  await box.call('DELETE', `/v1/webhooks/${hook['id']}`)
  const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  const { body: child } = await box.call('POST', '/v1/api-keys', { label: 'child' }, { key: key['key'] as string })
  const { body: rotated } = await box.call('POST', `/v1/api-keys/${key['id']}/rotate`)
  await box.call('DELETE', `/v1/api-keys/${key['id']}`)
  const told = [
    ['webhook.created', hook['id'], { url: input.url, active: true }],
    ['webhook.updated', hook['id'], { active: false }],
    ['webhook.updated', hook['id'], { updated_by: watch['created_by'] }],
    ['webhook.deleted', hook['id'], { url: input.url }],
    ['key.created', key['id'], { label: 'agent', created_by: watch['created_by'] }],
    ['key.created', child['id'], { label: 'child', created_by: key['id'] }],
    ['key.rotated', key['id'], { label: 'agent' }],
    ['key.revoked', key['id'], { revoked_at: expect.any(String), ended: expect.objectContaining({ api_keys: 1 }) }],
  ].map(([type, id, rest]) => ({ type: type as string, identity_id: null, data: { id, ...(rest as object) } }))
  // not of itself
  const received = await sink.until(told.length)
  expect(received.map(({ body }) => body.type).toSorted()).toEqual(told.map(({ type }) => type).toSorted())
  const { body: feed } = await box.call('GET', '/v1/events?limit=50')
  expect(feed.data.toReversed()).toMatchObject([{ type: 'webhook.created', data: { id: watch['id'] } }, ...told])
  const all = JSON.stringify(feed) + received.map(({ raw }) => raw).join('')
  for (const secret of [watch, hook, turned].map((one) => one['secret'])) expect(all).not.toContain(secret)
  for (const secret of [key, child, rotated].map((one) => one['key'])) expect(all).not.toContain(secret)
  expect(all).not.toContain('header-canary')
  // who may not read them is told nothing
  const { body: reader } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:read'] })
  const { body: seen } = await box.call('GET', '/v1/events?limit=50', undefined, { key: reader['key'] as string })
  expect(seen.data).toEqual([])
})

test('a change that is refused has no event', async () => {
  const box = await appliance(near)
  const { body: hook } = await box.call('POST', '/v1/webhooks', { url: 'http://127.0.0.1:9/hook', events: ['email.received'] })
  expect((await box.call('DELETE', `/v1/api-keys/${hook['created_by']}`)).body.error['code']).toBe('last_key')
  expect((await box.call('PATCH', `/v1/webhooks/${hook['id']}`, { url: 'http://10.0.0.1/' })).status).toBe(400)
  const { body: feed } = await box.call('GET', '/v1/events')
  expect(feed.data.map(({ type }) => type as string)).toEqual(['webhook.created'])
})
