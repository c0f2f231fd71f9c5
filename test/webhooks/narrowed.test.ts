import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

test('a webhook that was narrowed sends nothing of before to a new url: not what waits, not what is sent again', async () => {
  const clock = new HeldClock(Date.now())
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }, clock)
  const sink = await WebhookSink.start()
  const [{ body: ada }, { body: bob }] = [
    await box.call('POST', '/v1/identities', {}),
    await box.call('POST', '/v1/identities', {}),
  ]
  const scopes = ['account:read', 'account:write', 'identities:read']
  const { body: small } = await box.call('POST', '/v1/api-keys', { scopes })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { scopes: [...scopes, 'emails:read'], identity_id: bob['id'] })
  const as = [{ key: small['key'] }, { key: bound['key'] }]
  const narrowed = [{ events: ['identity.updated'] }, { identity_id: bob['id'] }]
  for (const [index, change] of narrowed.entries()) {
    const input = { url: `${sink.url}/old${index}`, events: ['email.received'] }
    const path = `/v1/webhooks/${(await box.call('POST', '/v1/webhooks', input)).body['id']}`
    const newest = async () => (await box.call('GET', `${path}/deliveries`)).body.data[0]
    const mail = async (): Promise<unknown> =>
      deliver(box.smtp, { to: ada['email'], raw: message({ Subject: 'x' }, 'a secret\n') })
    await mail()
    await box.settled()
    const sent = await newest()
    const again = `${path}/deliveries/${sent.id}/redeliver`
    if (index === 0) {
      const refused = await box.call('POST', again, undefined, as[0])
      expect(refused).toMatchObject({ status: 403, body: { error: { code: 'missing_scope' } } })
      expect((await box.call('POST', again)).status).toBe(200)
      await box.settled()
    }
    sink.paths.set(`/old${index}`, says(503))
    await mail()
    await box.settled()
    await box.call('PATCH', path, change)
    expect((await box.call('PATCH', path, { url: `${sink.url}/new` }, as[index])).status).toBe(200)
    for (const options of [as[index], {}]) {
      const refused = await box.call('POST', again, undefined, options)
      expect(refused).toMatchObject({ status: 409, body: { error: { code: 'event_not_wanted' } } })
    }
    clock.advance(6000)
    await box.settled()
    const waited = await newest()
    expect(waited).toMatchObject({
      status: 'failed',
      attempts: [{ response_status: 503 }, { error: expect.stringContaining('does not receive this event') }],
    })
    expect((await box.call('POST', `${path}/test`, undefined, as[index])).status).toBe(200)
    await box.settled()
    await box.call('DELETE', path)
  }
  const heard = (path: string): string[] => sink.received.filter((one) => one.path === path).map(({ body }) => body.event)
  expect(heard('/old0')).toEqual(Array.from({ length: 3 }, () => 'email.received'))
  expect(heard('/new')).toEqual(['webhook.test', 'webhook.test'])
})
