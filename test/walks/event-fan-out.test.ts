import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }

test('a message that arrives is posted, signed both ways, to whoever asked; and the list of deliveries says so', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const made = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/mail`, events: ['email.received', 'sms.received'] })
  expect(made.status).toBe(201)
  expect(made.headers.get('location')).toBe(`/v1/webhooks/${made.body.id}`)
  expect(made.body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  await box.call('POST', '/v1/webhooks', { url: `${sink.url}/never`, events: ['identity.deleted'] })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Your code' }, 'Your code is 493817\n') })

  const [got] = await sink.until(1)
  expect(got!.path).toBe('/mail')
  expect(got!.body).toMatchObject({ event: 'email.received', type: 'email.received', identity_id: ada.id })
  expect(got!.body.data).toMatchObject({ subject: 'Your code', codes: ['493817'], to: ada.email })
  expect(got!.body.data['body_text']).toContain('493817')
  expect(got!.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': got!.body.id })
  expect(got!.headers['x-service-signature']).toBe(createHmac('sha256', made.body.secret).update(got!.raw).digest('hex'))
  const verified = new Webhook(made.body.secret).verify(got!.raw, got!.headers as Record<string, string>)
  expect(verified).toEqual(got!.body)
  expect(() => new Webhook(made.body.secret).verify(`${got!.raw} `, got!.headers as Record<string, string>)).toThrow('signature')

  const { body: listed } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(listed.data[0]).toEqual(got!.body)
  await box.settled()
  expect((await box.call('GET', `/v1/webhooks/${made.body.id}/deliveries`)).body.data).toMatchObject([
    {
      event_id: got!.body.id,
      event: 'email.received',
      status: 'delivered',
      response_status: 200,
      response_body: 'thanks',
      next_attempt_at: null,
      attempts: [{ number: 1, status: 'delivered', response_status: 200, error: null }],
    },
  ])
  expect(sink.received).toHaveLength(1)
})

test('a failing endpoint gets the same event with the same id again, and a restart forgets nothing', async () => {
  const held = Date.now()
  const box = await appliance(near, { now: () => held })
  const sink = await WebhookSink.start()
  sink.behaviour = says(500, {}, 'not now')
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  const [first] = await sink.until(1)
  await box.settled()
  expect((await box.call('GET', `/v1/webhooks/${webhook.id}/deliveries`)).body.data).toMatchObject([
    { status: 'pending', response_status: 500, response_body: 'not now' },
  ])
  sink.behaviour = says(204)
  await box.restart()
  const { body: list } = await box.call('GET', `/v1/webhooks/${webhook.id}/deliveries`)
  await box.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${list.data[0].id}/redeliver`)
  const [, second] = await sink.until(2)
  expect(second!.raw).toBe(first!.raw)
  expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id'])
  await box.settled()
  expect((await box.call('GET', `/v1/webhooks/${webhook.id}/deliveries`)).body.data).toMatchObject([
    { status: 'delivered', attempts: [{ status: 'failed' }, { status: 'delivered' }] },
  ])
})
