import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { openStore } from '../support/open-store.ts'
import { type Behaviour, says, WebhookSink } from '../support/webhook-sink.ts'
import { join } from 'node:path'

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }

test('what an endpoint answered is shown to those who may read the event, as it may repeat it', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  sink.behaviour = (response, { raw }) => void response.writeHead(500).end(raw)
  const { body: ada } = await box.call('POST', '/v1/identities', {})
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['email.received'] })
  await deliver(box.smtp, { to: ada['email'], raw: message({ Subject: 'A canary' }, 'x\n') })
  await box.settled()
  const at = `/v1/webhooks/${webhook['id']}/deliveries`
  const seenBy = async (options: { key?: string }): Promise<unknown[]> => {
    const { body: list } = await box.call('GET', at, undefined, options)
    const { body: one } = await box.call('GET', `${at}/${list.data[0].id}`, undefined, options)
    return [list.data[0], one].flatMap(({ response_body, attempts }) => [response_body, attempts[0].response_body])
  }
  for (const body of await seenBy({})) expect(body).toContain('A canary')
  const { body: small } = await box.call('POST', '/v1/api-keys', { scopes: ['account:read'] })
  expect(await seenBy({ key: small['key'] })).toEqual([null, null, null, null])
})

test('the end of a former URL is not that of the present one: a late 410, and its failures', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const held: Parameters<Behaviour>[0][] = []
  sink.paths.set('/old', (response) => void held.push(response))
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/old`, events: ['identity.created'] })
  const at = `/v1/webhooks/${webhook['id']}`
  await box.call('POST', '/v1/identities', {})
  await sink.until(1)
  await box.call('PATCH', at, { url: `${sink.url}/new` })
  for (const response of held) response.writeHead(410).end()
  await box.settled()
  expect((await box.call('GET', at)).body).toMatchObject({ active: true, failing_since: null })
  sink.paths.set('/new', says(500))
  await box.call('POST', '/v1/identities', {})
  await expect.poll(async () => (await box.call('GET', at)).body['failing_since']).not.toBeNull()
  expect((await box.call('PATCH', at, { description: 'x' })).body['failing_since']).not.toBeNull()
  expect((await box.call('PATCH', at, { url: `${sink.url}/newer` })).body['failing_since']).toBeNull()
})

test('what happened while a webhook was disabled is not posted when the log is read again after a crash', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  await box.call('PATCH', `/v1/webhooks/${webhook['id']}`, { active: false })
  await box.call('POST', '/v1/identities', {})
  await box.call('PATCH', `/v1/webhooks/${webhook['id']}`, { active: true })
  await box.settled()
  await box.app.stop()
  const store = openStore(join(box.directory, 'data', 'pillarbox.db'))
  store.exec(`UPDATE bookmarks SET seq = 0 WHERE name = 'webhooks'`)
  store.close()
  await box.restart()
  const { body: later } = await box.call('POST', '/v1/identities', {})
  await box.settled()
  expect(sink.received.map(({ body }) => body.identity_id)).toEqual([later.id])
})
