import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { type Received, WebhookSink } from '../support/webhook-sink.ts'

type Headers = Record<string, string>

test.each([
  ['one that the box made', undefined, {}],
  ['one in the format of the box', `whsec_${Buffer.alloc(24, 7).toString('base64')}`, {}],
  ['one of the user’s own, with signs that base64 lacks', 'my own secret: "not" base64!', { format: 'raw' as const }],
])('the library verifies what arrived over HTTP, with %s, and nothing that was changed on the way', async (_what, given, how) => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const input = { url: sink.url, events: ['email.received'], ...(given === undefined ? {} : { secret: given }) }
  const { body: webhook } = await box.call('POST', '/v1/webhooks', input)
  const arrive = async (count: number): Promise<Received> => {
    const raw = message({ Subject: 'Grüße 🎉', 'Content-Type': 'text/plain; charset=utf-8' }, `Zürich ${count}\n`)
    await deliver(box.smtp, { to: ada.email, raw: Buffer.from(raw) })
    return (await sink.until(count)).at(-1)!
  }
  const first = await arrive(1)
  const library = new Webhook(webhook.secret, how)
  const headers = first.headers as Headers
  expect(library.verify(first.raw, headers)).toEqual(first.body)
  for (const [raw, changed] of [
    [first.raw.replace('Zürich', 'Zurich'), headers],
    [first.raw, { ...headers, 'webhook-id': 'evt_01jd3v8m2ef1pbx9mz5k7q4w6a' }],
    [first.raw, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }],
    [first.raw, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 600) }],
    [first.raw, { ...headers, 'webhook-signature': headers['webhook-signature']!.replace('v1,', 'v1,A') }],
  ] as const) {
    expect(() => library.verify(raw, changed)).toThrow(/signature|timestamp/i)
  }

  const { body: rotated } = await box.call('POST', `/v1/webhooks/${webhook.id}/secret/rotate`)
  const second = await arrive(2)
  for (const one of [library, new Webhook(rotated.secret)]) {
    expect(one.verify(second.raw, second.headers as Headers)).toEqual(second.body)
  }
})
