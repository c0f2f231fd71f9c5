import { expect, test } from 'vitest'
import { appliance } from '../../support/appliance.ts'
import { keyWith } from '../../support/live.ts'

test('an export is for keys that may read all that is in it: of one with events of keys and webhooks only those with account:read get a URL', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const hook = { url: 'https://hooks.example.com/its-secret', events: ['email.received'], identity_id: ada['id'] }
  expect((await box.call('POST', '/v1/webhooks', hook)).status).toBe(201)
  const { body: job } = await box.call('POST', `/v1/identities/${ada['id']}/export`, {})
  await box.settled()
  const reading = ['identities:read', 'messages:read', 'emails:read', 'sms:read', 'cards:read']
  const narrow = await keyWith(box, { scopes: reading })
  const wide = await keyWith(box, { scopes: [...reading, 'account:read'] })
  const asked = async (key: string): Promise<number> =>
    (await box.call('GET', `/v1/jobs/${job['id']}`, undefined, { key })).status
  expect([await asked(narrow.key), await asked(wide.key)]).toEqual([404, 200])
  const { body: listed } = await box.call('GET', '/v1/jobs', undefined, { key: narrow.key })
  expect(listed.data).toEqual([])
})
