import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { usage } from '../accounts/limited.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { type Behaviour, WebhookSink } from '../support/webhook-sink.ts'

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
const word = 'quietcanary'

const echoes: (status: number) => Behaviour =
  (status) =>
  (response, { raw }) =>
    void response.writeHead(status).end(raw.slice(0, 1900))

/** A box with an e-mail that a webhook heard of. */
async function heard(
  behaviour: Behaviour,
  env = {},
  clock = new HeldClock(Date.now()),
): Promise<{ box: Appliance; webhook: string; email: string; clock: HeldClock }> {
  const box = await appliance({ ...near, ...env }, clock)
  const sink = await WebhookSink.start()
  sink.behaviour = behaviour
  const input = { url: `${sink.url}/echo`, events: ['email.received'] }
  const { body: webhook } = await box.call('POST', '/v1/webhooks', input)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada['email'], raw: message({ Subject: word }, `${word}\n`) })
  await sink.until(1)
  const { body: emails } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const email = `/v1/identities/${ada.id}/emails/${emails.data[0].id}`
  return { box, webhook: `/v1/webhooks/${webhook.id}/deliveries`, email, clock }
}

/** The last answer, and whether the message is anywhere in the deliveries or the file of the box, which is stopped. */
async function rest(box: Appliance, deliveries: string): Promise<unknown> {
  const { body } = await box.call('GET', deliveries)
  const { response_status, response_body } = body.data[0]
  // the words of the search index take longer
  await box.app.jobs.find(({ name }) => name === 'empty-trash')!.run()
  await box.app.stop()
  const file = readFileSync(join(box.directory, 'data', 'pillarbox.db'))
  return { response_status, response_body, found: JSON.stringify(body).includes(word) || file.includes(word) }
}

test.each([[200], [500]])('an answer %i that repeats a message goes with it, from the API and from the file', async (status) => {
  const { box, webhook, email } = await heard(echoes(status))
  await box.settled()
  const { body: before } = await box.call('GET', webhook)
  expect(before.data[0].response_body).toContain(word)
  expect(await usage(box, 'storage_bytes')).toBeGreaterThan(0)
  await box.call('DELETE', `${email}?purge=true`)
  expect(await usage(box, 'storage_bytes')).toBe(0)
  expect(await rest(box, webhook)).toEqual({ response_status: status, response_body: null, found: false })
})

test('so does one that comes after the message was purged', async () => {
  const { promise: purged, resolve } = Promise.withResolvers<void>()
  const { box, webhook, email } = await heard((...call) => void purged.then(() => echoes(500)(...call)))
  await box.call('DELETE', `${email}?purge=true`)
  resolve()
  await box.settled()
  expect(await rest(box, webhook)).toEqual({ response_status: 500, response_body: null, found: false })
})

test('so does one about an event that the log no longer has', async () => {
  const { box, webhook, email, clock } = await heard(echoes(200), { PILLARBOX_RETENTION__EVENTS: '1 d' })
  await box.settled()
  // the newest event stays
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  await box.settled()
  clock.advance(2 * 24 * 3_600_000)
  await box.app.jobs.find(({ name }) => name === 'forget-events')!.run()
  await box.call('DELETE', `${email}?purge=true`)
  expect(await rest(box, webhook)).toEqual({ response_status: 200, response_body: null, found: false })
})
