import { expect, test } from 'vitest'
import { hour, iso, minute } from '../../src/core/clock.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { card as newCard } from '../support/card.ts'
import { connect } from '../support/mcp-clients.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

type Any = ReturnType<typeof JSON.parse>

const code = ({ status, body }: { status: number; body: { error?: { code?: string } } }): unknown => [status, body.error?.code]

const expire = (box: Appliance): Promise<void> => box.app.jobs.find(({ name }) => name === 'expire-identities')!.run()

/** A box whose clock stands still, and Ada, who lives for an hour. */
async function mortal(
  env: Record<string, string> = {},
): Promise<{ box: Appliance; clock: HeldClock; ada: Any; at: string; end: string }> {
  const clock = new HeldClock()
  const box = await appliance(env, clock)
  const end = iso(clock.now() + hour)
  const { status, body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', expires_at: end })
  expect([status, ada['expires_at']]).toEqual([201, end])
  return { box, clock, ada, at: `/v1/identities/${ada['id']}`, end }
}

const mail = (ada: Any) => ({ to: ada.email as string, raw: message({ To: ada.email as string, Subject: 'Hello' }, 'x') })

test('an identity that has expired takes no mail, is found by no call, and its keys end, from that moment on', async () => {
  const { box, clock, ada, at } = await mortal()
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
  const who = async () => (await box.call('GET', '/v1/whoami', undefined, { key: bound['key'] as string })).status
  expect(await deliver(box.smtp, mail(ada))).toMatch(/^250/)
  clock.advance(hour - 1)
  expect([(await box.call('GET', at)).status, await who()]).toEqual([200, 200])
  clock.advance(1)
  // before anything has looked for it
  expect(await deliver(box.smtp, mail(ada))).toMatch(/^550 5\.1\.1/)
  expect(code(await box.call('GET', at))).toEqual([404, 'not_found'])
  expect(code(await box.call('PATCH', at, { expires_at: null }))).toEqual([404, 'not_found'])
  expect(code(await box.call('POST', `${at}/emails`, { to: 'a@elsewhere.test' }))).toEqual([404, 'not_found'])
  expect((await box.call('GET', '/v1/identities')).body.data).toEqual([])
  expect(await who()).toBe(401)
})

test('no login and no card of an identity that has expired is revealed, from that moment on', async () => {
  const { box, clock, at } = await mortal()
  const { body: login } = await box.call('POST', `${at}/logins`, { label: 'GitHub', password: 'correct horse' })
  const { body: card } = await box.call('POST', `${at}/cards`, newCard())
  const calls: [string, string][] = [
    ['POST', `/v1/logins/${login['id']}/reveal`],
    ['GET', `/v1/logins/${login['id']}`],
    ['POST', `/v1/cards/${card['id']}/reveal`],
    ['GET', `/v1/cards/${card['id']}`],
  ]
  const asked = async (): Promise<unknown[]> =>
    Promise.all(calls.map(async ([method, path]) => (await box.call(method, path, method === 'POST' ? {} : undefined)).status))
  clock.advance(hour - 1)
  expect(await asked()).toEqual([200, 200, 200, 200])
  clock.advance(1)
  // before anything has looked for it
  expect(await asked()).toEqual([404, 404, 404, 404])
})

const attached = (ada: Any): string =>
  message(
    { To: ada.email as string, Subject: 'Hello', 'MIME-Version': '1.0', 'Content-Type': 'multipart/mixed; boundary=b' },
    '--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n\r\nA note.\r\n--b--\r\n',
  )

test('no URL, no public profile and no token of an identity that has expired is good for anything, from that moment on', async () => {
  const { box, clock, ada, at, end } = await mortal()
  await deliver(box.smtp, { to: ada.email, raw: attached(ada) })
  const { body: emails } = await box.call('GET', `${at}/emails`)
  await box.call('POST', `${at}/phone`)
  const { body: me } = await box.call('GET', at)
  const media = [{ content_type: 'image/png', content: Buffer.from('a picture').toString('base64') }]
  const sms = { from: '+15550100199', to: me['phone_number'], body: 'Look.', media }
  const { body: texted } = await box.call('POST', '/v1/sms/loopback/inject', sms)
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada.id })
  const { body: exported } = await box.call('POST', `${at}/export`, { format: 'mbox' })
  await box.settled()
  clock.advance(hour - minute)
  const [file, picture, job, issued] = await Promise.all([
    box.call('GET', `${at}/emails/${emails.data[0].id}/attachments/0`),
    box.call('GET', `${at}/sms/${texted['id']}/media/0`),
    box.call('GET', `/v1/jobs/${exported['id']}`),
    box.call('POST', `${at}/token`, { expires_in: 900 }),
  ])
  expect(issued.body['expires_at']).toBe(end)
  const links = [file, picture].map(({ body }) => new URL(body['url'] as string))
  links.push(new URL(job.body['result'].url as string))
  const documents = ['', '/did.json', '/registration.json', '/agent-card.json', '/reputation'].map(
    (name) => `/v1/agents/${agent['id']}${name}`,
  )
  const asked = (): Promise<unknown[]> =>
    Promise.all([
      ...links.map(async ({ pathname, search }) => (await fetch(`${box.url}${pathname}${search}`)).status),
      ...documents.map(async (path) => (await box.call('GET', path)).status),
    ])
  clock.advance(minute - 1)
  expect(await asked()).toEqual([200, 200, 200, 200, 200, 200, 200, 200])
  clock.advance(1)
  // before anything has looked for it
  expect(await asked()).toEqual([404, 404, 404, 404, 404, 404, 404, 404])
  expect((await box.call('GET', '/v1/agents')).body.data).toEqual([])
  expect(code(await box.call('POST', '/v1/api-keys', { identity_id: ada.id }))).toEqual([404, 'not_found'])
})

test('a token of an identity that has expired is not valid, though it was issued for longer', async () => {
  const { box, clock, at } = await mortal()
  const { body: issued } = await box.call('POST', `${at}/token`, { expires_in: 900 })
  const sooner = iso(clock.now() + minute)
  expect((await box.call('PATCH', at, { expires_at: sooner })).status).toBe(200)
  const valid = async () => (await box.call('POST', '/v1/verify/token', { token: issued['token'] })).body['valid']
  clock.advance(minute - 1)
  expect(await valid()).toBe(true)
  clock.advance(1)
  expect(await valid()).toBe(false)
})

test('nothing is sent for an identity that has expired, nor received, from that moment on', async () => {
  const { box, clock, ada, at, end } = await mortal({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['*'], identity_id: ada.id })
  await box.call('POST', `${at}/phone`)
  const { body: me } = await box.call('GET', at)
  await box.settled()
  const heard = sink.received.length
  const { body: kept } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const later = { to: kept['email'], subject: 's', body_text: 't', send_at: end }
  const { body: sent } = await box.call('POST', `${at}/emails`, later)
  expect(sent['status']).toBe('scheduled')
  clock.advance(hour)
  const text = { from: '+15550100199', to: me['phone_number'], body: 'Hello.' }
  expect((await box.call('POST', '/v1/sms/loopback/inject', text)).status).toBe(404)
  await box.call('POST', `/v1/webhooks/${webhook['id']}/test`)
  await box.settled()
  expect((await box.call('GET', `/v1/identities/${kept['id']}/emails`)).body.data).toEqual([])
  expect(sink.received).toHaveLength(heard)
  await expire(box)
  await box.settled()
  expect((await box.call('GET', `/v1/identities/${kept['id']}/emails`)).body.data).toEqual([])
})

test('it is deleted as by DELETE: with its event, and its address is never reused', async () => {
  const { box, clock, ada, at } = await mortal()
  clock.advance(hour - 1)
  await expire(box)
  expect((await box.call('GET', at)).status).toBe(200)
  const { body: kept } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: sent } = await box.call('POST', `${at}/emails`, {
    to: kept['email'],
    subject: 's',
    body_text: 't',
    send_at: iso(clock.now() + minute),
  })
  expect(sent['status']).toBe('scheduled')
  clock.advance(1)
  await expire(box)
  await box.settled()
  const { body: events } = await box.call('GET', '/v1/events?types=identity.deleted')
  expect(events.data).toMatchObject([{ event: 'identity.deleted', identity_id: ada.id, data: { id: ada.id, name: 'Ada' } }])
  expect(box.logged.filter((line) => line.includes('identity expired'))).toHaveLength(1)
  clock.advance(hour)
  await box.settled()
  expect((await box.call('GET', `/v1/identities/${kept['id']}/emails`)).body.data).toEqual([])
  const { body: again } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  expect(again['email']).not.toBe(ada.email)
  expect(again['expires_at']).toBeNull()
})

test('expires_at is in the future, and can be changed and taken away; a key that is bound to the identity cannot prolong it', async () => {
  const { box, clock, ada, at, end } = await mortal()
  const past = iso(clock.now())
  for (const [method, path] of [
    ['POST', '/v1/identities'],
    ['PATCH', at],
  ] as const) {
    const told = await box.call(method, path, { expires_at: past })
    expect([method, told.status, told.body.error['param']]).toEqual([method, 400, 'expires_at'])
  }
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
  const own = (expires_at: string | null) => box.call('PATCH', at, { expires_at }, { key: bound['key'] as string })
  expect(code(await own(null))).toEqual([403, 'beyond_own'])
  expect(code(await own(iso(clock.now() + 2 * hour)))).toEqual([403, 'beyond_own'])
  expect((await own(end)).status).toBe(200)
  const sooner = iso(clock.now() + minute)
  expect((await own(sooner)).body['expires_at']).toBe(sooner)
  const client = await connect('2025', `${box.url}/mcp`, bound['key'] as string)
  expect((await client.call('whoami')).text).toContain(`deleted at ${sooner}`)
  const later = iso(clock.now() + 3 * hour)
  expect((await box.call('PATCH', at, { expires_at: later })).body['expires_at']).toBe(later)
  clock.advance(2 * hour)
  expect((await box.call('GET', '/v1/whoami', undefined, { key: bound['key'] as string })).status).toBe(200)
  expect((await box.call('PATCH', at, { expires_at: null })).body['expires_at']).toBeNull()
  expect((await box.call('PATCH', at, { name: 'Ada L' })).body['expires_at']).toBeNull()
  clock.advance(48 * hour)
  await expire(box)
  expect(await deliver(box.smtp, mail(ada))).toMatch(/^250/)
  // where it does not end, its key may end it
  expect((await own(iso(clock.now() + hour))).status).toBe(200)
})
