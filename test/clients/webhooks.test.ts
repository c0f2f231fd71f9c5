import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { verifyWebhook } from '../../clients/typescript/src/index.ts'
import { appliance } from '../support/appliance.ts'
import { WebhookSink } from '../support/webhook-sink.ts'
import { clientOf } from './support.ts'

test('a delivery of a box is verified, and only that', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  const client = clientOf(box)
  const webhook = await client.webhooks.create({ url: sink.url, events: ['identity.created'] })
  await client.identities.create({ name: 'Grüße 🎉' })
  const [{ raw, headers }] = (await sink.until(1)) as [(typeof sink.received)[0]]
  const event = await verifyWebhook(raw, headers, webhook.secret)
  if (event.type !== 'identity.created') throw new Error(event.type)
  expect(event.data.name).toBe('Grüße 🎉')
  const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), String(value)]))
  expect(await verifyWebhook(Buffer.from(raw), new Headers(plain), webhook.secret)).toEqual(event)
  expect(await verifyWebhook(raw, plain, webhook.secret)).toEqual(event)

  const forged = { code: 'webhook_forged' }
  await expect(verifyWebhook(raw.replace('Grüße', 'Gruss'), headers, webhook.secret)).rejects.toMatchObject(forged)
  await expect(verifyWebhook(raw, headers, 'whsec_AAAA')).rejects.toMatchObject(forged)
  await expect(verifyWebhook(raw, { ...headers, 'webhook-signature': 'v1,????' }, webhook.secret)).rejects.toMatchObject(forged)
  await expect(verifyWebhook(raw, { ...headers, 'webhook-id': 'evt_x' }, webhook.secret)).rejects.toMatchObject(forged)
  const later = { now: Date.now() + 301_000 }
  await expect(verifyWebhook(raw, headers, webhook.secret, later)).rejects.toMatchObject({ code: 'webhook_too_old' })
  expect(await verifyWebhook(raw, headers, webhook.secret, { ...later, tolerance: 3600 })).toEqual(event)
  const { 'webhook-signature': _, ...unsigned } = headers
  await expect(verifyWebhook(raw, unsigned, webhook.secret)).rejects.toMatchObject({ code: 'webhook_unsigned' })
  const timeless = { ...headers, 'webhook-timestamp': 'x' }
  await expect(verifyWebhook(raw, timeless, webhook.secret)).rejects.toMatchObject({ code: 'webhook_too_old' })
})

test('a delivery is verified by the former secret too, after a rotation', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  const client = clientOf(box)
  const former = await client.webhooks.create({ url: sink.url, events: ['identity.created'] })
  const { secret } = await client.webhooks.rotateSecret(former.id)
  await client.identities.create()
  const [{ raw, headers }] = (await sink.until(1)) as [(typeof sink.received)[0]]
  for (const one of [secret, former.secret])
    expect(await verifyWebhook(raw, headers, one)).toMatchObject({ type: 'identity.created' })
})

test('what other software signed by Standard Webhooks is verified', async () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const now = new Date()
  const body = '{"type":"identity.created"}'
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': `v1,AAAA ${new Webhook(secret).sign('msg_1', now, body)}`,
  }
  expect(await verifyWebhook(body, headers, secret)).toEqual({ type: 'identity.created' })
})

test('a secret that is none verifies nothing, also not what was signed with no key', async () => {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signature = createHmac('sha256', '').update(`msg_1.${timestamp}.{}`).digest('base64')
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  for (const secret of ['', 'whsec_', 'whsec_no base64?'])
    await expect(verifyWebhook('{}', headers, secret)).rejects.toMatchObject({ code: 'bad_secret' })
})

test('a body of a stranger costs no more than a few times its size before it is refused', async () => {
  const body = new Uint8Array(64 * 1024 * 1024)
  const signed = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    'webhook-signature': 'v1,AAAA',
  }
  const before = process.memoryUsage().rss
  await expect(verifyWebhook(body, signed, 'whsec_AAAA')).rejects.toMatchObject({ code: 'webhook_forged' })
  expect((process.memoryUsage().rss - before) / body.length).toBeLessThan(4)
})
