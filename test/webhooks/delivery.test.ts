import { expect, test } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { drips, hangs, says, takes, WebhookSink } from '../support/webhook-sink.ts'

const near = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
const second = 1000
const minute = 60 * second
const hour = 60 * minute

const make = async (box: Appliance, url: string, part: object = {}): Promise<{ id: string; secret: string }> => {
  const { body } = await box.call('POST', '/v1/webhooks', { url, events: ['identity.created'], ...part })
  return body as unknown as { id: string; secret: string }
}
const deliveries = async (box: Appliance, id: string, query = '') =>
  (await box.call('GET', `/v1/webhooks/${id}/deliveries${query}`)).body.data
const get = async (box: Appliance, id: string) => (await box.call('GET', `/v1/webhooks/${id}`)).body

/** A box whose clock stands still. */
async function held(): Promise<{ box: Appliance; sink: WebhookSink; clock: HeldClock }> {
  const clock = new HeldClock(Date.now())
  const box = await appliance(near, clock)
  const sink = await WebhookSink.start()
  return { box, sink, clock }
}

test('ten attempts, each at its time of the list, all with the same id and octets; then it has failed', async () => {
  const { box, sink, clock } = await held()
  sink.behaviour = says(503)
  const webhook = await make(box, `${sink.url}/down`)
  await box.call('POST', '/v1/identities', {})
  const waits = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]
  const down = () => sink.received.filter(({ path }) => path === '/down')
  for (const [index, wait] of waits.entries()) {
    await box.settled()
    expect(down()).toHaveLength(index + 1)
    const [delivery] = await deliveries(box, webhook.id)
    expect(delivery).toMatchObject({ status: 'pending', response_status: 503 })
    expect(delivery.attempts).toHaveLength(index + 1)
    const due = Date.parse(delivery.next_attempt_at) - clock.now()
    expect(due).toBeGreaterThanOrEqual(wait * 0.9)
    expect(due).toBeLessThanOrEqual(wait * 1.1)
    clock.advance(due - 1)
    await box.settled()
    expect(down()).toHaveLength(index + 1)
    clock.advance(1)
  }
  await box.settled()
  expect((await deliveries(box, webhook.id))[0]).toMatchObject({ status: 'failed', next_attempt_at: null })
  expect(new Set(down().map(({ raw }) => raw)).size).toBe(1)
  expect(new Set(down().map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(new Set(down().map(({ headers }) => headers['webhook-timestamp'])).size).toBe(10)
  expect(await get(box, webhook.id)).toMatchObject({ active: true })
})

test.each([
  ['900', 15 * minute],
  ['date', 20 * minute],
  ['9999999', 24 * hour],
])('Retry-After: %s is honoured', async (value, wait) => {
  const { box, sink, clock } = await held()
  const text = value === 'date' ? new Date(Math.floor(clock.now() / 1000) * 1000 + wait).toUTCString() : value
  sink.behaviour = says(429, { 'retry-after': text })
  const webhook = await make(box, `${sink.url}/busy`)
  await box.call('POST', '/v1/identities', {})
  await box.settled()
  expect((await deliveries(box, webhook.id))[0]).toMatchObject({ status: 'pending', response_status: 429 })
  const due = Date.parse((await deliveries(box, webhook.id))[0].next_attempt_at) - clock.now()
  expect(due).toBeGreaterThan(wait - second)
  expect(due).toBeLessThanOrEqual(wait)
})

test.each([[301], [302], [307], [308], [400], [404], [500]])(
  '%i is a failure that is tried again, and no redirect is followed',
  async (status) => {
    const { box, sink } = await held()
    sink.behaviour = says(status, { location: `${sink.url}/elsewhere` }, 'x'.repeat(5000))
    const webhook = await make(box, `${sink.url}/here`)
    await box.call('POST', '/v1/identities', {})
    await box.settled()
    expect((await deliveries(box, webhook.id))[0]).toMatchObject({ status: 'pending', response_status: status })
    expect((await deliveries(box, webhook.id))[0].response_body).toBe('x'.repeat(1024))
    expect(sink.received.map(({ path }) => path)).toEqual(['/here'])
  },
)

test('410 switches a webhook off at once, and an event says so to those that listen', async () => {
  const { box, sink } = await held()
  sink.paths.set('/gone', says(410))
  const gone = await make(box, `${sink.url}/gone`, { headers: { 'X-Token': 'header-canary' } })
  await make(box, `${sink.url}/watch`, { events: ['webhook.disabled'] })
  await box.call('POST', '/v1/identities', {})
  const [told] = await sink.until(1, ({ path }) => path === '/watch')
  expect(told!.body).toMatchObject({ event: 'webhook.disabled', data: { id: gone.id, active: false, disabled_reason: 'gone' } })
  expect(told!.raw).not.toContain('header-canary')
  expect(told!.raw).not.toContain(gone.secret)
  expect(await get(box, gone.id)).toMatchObject({ active: false, disabled_reason: 'gone' })
  expect(await deliveries(box, gone.id)).toMatchObject([{ status: 'failed', response_status: 410 }])
  await box.call('POST', '/v1/identities', {})
  expect((await box.call('POST', `/v1/webhooks/${gone.id}/test`)).body.error).toMatchObject({
    type: 'conflict',
    code: 'webhook_inactive',
  })

  sink.paths.set('/gone', says(200))
  expect((await box.call('PATCH', `/v1/webhooks/${gone.id}`, { active: true })).body).toMatchObject({
    active: true,
    disabled_at: null,
  })
  await box.call('POST', '/v1/identities', { name: 'After' })
  const heard = await sink.until(2, ({ path }) => path === '/gone')
  expect(heard.map(({ body }) => body.data['name']).at(-1)).toBe('After')
})

test('five days of nothing but failure switch a webhook off; one success in between starts the count anew', async () => {
  const { box, sink, clock } = await held()
  sink.behaviour = says(500)
  const webhook = await make(box, `${sink.url}/down`)
  const fail = async (count: number): Promise<void> => {
    await box.call('POST', '/v1/identities', {})
    await box.settled()
    expect((await deliveries(box, webhook.id)).filter((one) => one.response_status === 500).length).toBeGreaterThanOrEqual(count)
  }
  await fail(1)
  const since = (await get(box, webhook.id))['failing_since']
  expect(since).not.toBeNull()
  clock.advance(5 * 24 * hour - 1)
  await fail(2)
  expect(await get(box, webhook.id)).toMatchObject({ active: true, failing_since: since })
  sink.behaviour = says(200)
  await box.call('POST', `/v1/webhooks/${webhook.id}/test`)
  await box.settled()
  expect((await get(box, webhook.id))['failing_since']).toBeNull()
  sink.behaviour = says(500)
  await fail(1)
  await box.call('POST', '/v1/identities', {})
  await box.settled()
  expect((await get(box, webhook.id))['failing_since']).not.toBeNull()
  clock.advance(5 * 24 * hour)
  await box.call('POST', '/v1/identities', {})
  await box.settled()
  expect(await get(box, webhook.id)).toMatchObject({ active: false, disabled_reason: 'failing' })
})

test('of failures while the clock was ahead the five days begin with the next one', async () => {
  const { box, sink, clock } = await held()
  sink.behaviour = says(500)
  const webhook = await make(box, `${sink.url}/down`)
  const fail = async (): Promise<void> => {
    await box.call('POST', '/v1/identities', {})
    await box.settled()
  }
  clock.advance(365 * 24 * hour)
  await fail()
  clock.advance(-364 * 24 * hour)
  await fail()
  expect((await get(box, webhook.id))['failing_since']).toBe(new Date(clock.now()).toISOString())
  clock.advance(5 * 24 * hour)
  await fail()
  expect(await get(box, webhook.id)).toMatchObject({ active: false, disabled_reason: 'failing' })
})

test('a webhook of a deleted identity is switched off, and cannot be switched on again', async () => {
  const { box, sink } = await held()
  const { body: ada } = await box.call('POST', '/v1/identities', {})
  const webhook = await make(box, `${sink.url}/ada`, { identity_id: ada['id'], events: ['*'] })
  await box.call('DELETE', `/v1/identities/${ada['id']}`)
  await box.settled()
  expect(await get(box, webhook.id)).toMatchObject({ active: false, disabled_reason: 'identity_deleted' })
  expect((await box.call('PATCH', `/v1/webhooks/${webhook.id}`, { active: true })).status).toBe(404)
  expect(sink.received.filter(({ path }) => path === '/ada')).toEqual([])
})

test('once a deletion is answered, nothing more is heard: not what waited, not what was under way', async () => {
  const { box, sink } = await held()
  sink.behaviour = hangs
  const webhook = await make(box, `${sink.url}/slow`)
  for (let count = 0; count < 10; count += 1) await box.call('POST', '/v1/identities', {})
  await sink.until(1)
  expect((await box.call('DELETE', `/v1/webhooks/${webhook.id}`)).status).toBe(200)
  const heard = sink.received.length
  sink.behaviour = says(200)
  for (let count = 0; count < 5; count += 1) await box.call('POST', '/v1/identities', {})
  const witness = await make(box, `${sink.url}/witness`)
  await box.call('POST', '/v1/identities', {})
  await sink.until(1, ({ path }) => path === '/witness')
  expect(witness.id).toBeDefined()
  expect(sink.received.filter(({ path }) => path === '/slow')).toHaveLength(heard)
})

test('of a response of control characters less is kept, and of a delivery that is repeated over and over the last attempts', async () => {
  const { box, sink } = await held()
  sink.behaviour = says(200, {}, '\u0001'.repeat(1024))
  const webhook = await make(box, `${sink.url}/again`)
  await box.call('POST', '/v1/identities', {})
  await expect.poll(async () => (await deliveries(box, webhook.id))[0]).toMatchObject({ status: 'delivered' })
  const [first] = await deliveries(box, webhook.id)
  expect(first.response_body.replaceAll('\u0001', '')).toBe('')
  expect(first.response_body.length).toBeGreaterThan(300)
  expect(JSON.stringify(first.response_body).length).toBeLessThan(2100)
  for (let count = 2; count <= 54; count += 1) {
    await box.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${first.id}/redeliver`)
    await expect
      .poll(async () => (await deliveries(box, webhook.id))[0], { interval: 10 })
      .toMatchObject({
        status: 'delivered',
        attempts: expect.toSatisfy((all: { number: number }[]) => all.at(-1)!.number === count),
      })
  }
  const [{ attempts }] = await deliveries(box, webhook.id)
  expect(attempts.map(({ number }: { number: number }) => number)).toEqual(Array.from({ length: 51 }, (_, index) => index + 4))
})

test('an event that is no longer in the log is not sent again, and the answer says why', async () => {
  const clock = new HeldClock(Date.now())
  const box = await appliance({ ...near, PILLARBOX_RETENTION__EVENTS: '1 d', PILLARBOX_RETENTION__DELIVERIES: '90 d' }, clock)
  const sink = await WebhookSink.start()
  const webhook = await make(box, sink.url)
  await box.call('POST', '/v1/identities', {})
  await box.settled()
  const [delivery] = await deliveries(box, webhook.id)
  clock.advance(3 * 24 * hour)
  await box.call('POST', '/v1/identities', {})
  await box.settled()
  await box.app.jobs.find(({ name }) => name === 'forget-events')!.run()
  const again = await box.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}/redeliver`)
  expect([again.status, again.body.error]).toEqual([
    409,
    expect.objectContaining({
      code: 'event_gone',
      message: 'The event is no longer in the log, and cannot be sent again.',
    }),
  ])
  expect((await deliveries(box, webhook.id)).find(({ id }: { id: string }) => id === delivery.id)).toMatchObject({
    status: 'delivered',
  })
})

test('what endpoints answer is storage of the account, until its deliveries are removed', async () => {
  const { box, sink, clock } = await held()
  const used = async (): Promise<number> => (await box.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes
  const until = async (id: string, attempts: number): Promise<void> => {
    const ended = async (): Promise<number> =>
      (await deliveries(box, id))[0]?.attempts.filter((one: { ended_at: unknown }) => one.ended_at !== null).length
    await expect.poll(ended).toBe(attempts)
  }
  sink.behaviour = says(200, {}, 'thanks')
  const webhook = await make(box, `${sink.url}/brief`)
  await box.call('POST', '/v1/identities', {})
  await until(webhook.id, 1)
  expect(await used()).toBe(0)
  sink.behaviour = says(200, {}, 'x'.repeat(5000))
  const [first] = await deliveries(box, webhook.id)
  const again = `/v1/webhooks/${webhook.id}/deliveries/${first.id}/redeliver`
  await box.call('POST', again)
  await until(webhook.id, 2)
  const one = await used()
  expect(one).toBeGreaterThan(700)
  expect(one).toBeLessThan(2048)
  for (let count = 3; count <= 56; count += 1) {
    await box.call('POST', again)
    await until(webhook.id, Math.min(count, 51))
    await box.settled()
  }
  // the answers of attempts that are no longer kept do not count
  expect(await used()).toBe(51 * one)
  clock.advance(31 * 24 * hour)
  await box.app.jobs.find(({ name }) => name === 'clear-deliveries')!.run()
  expect(await deliveries(box, webhook.id)).toEqual([])
  expect(await used()).toBe(0)
})

test('what was deleted is not told any more, however soon an event is delivered once more', async () => {
  const { box, sink } = await held()
  const { body: ada } = await box.call('POST', '/v1/identities', {})
  const webhook = await make(box, `${sink.url}/mail`, { events: ['email.received'] })
  await deliver(box.smtp, { to: ada['email'], raw: message({ Subject: 'Deleted canary' }, 'Body canary\n') })
  const [told] = await sink.until(1, ({ path }) => path === '/mail')
  expect(told!.body.data).toMatchObject({ subject: 'Deleted canary' })
  await box.settled()
  expect((await deliveries(box, webhook.id))[0]).toMatchObject({ status: 'delivered' })
  const id = String(told!.body.data['id'])
  expect((await box.call('DELETE', `/v1/identities/${ada['id']}/emails/${id}`)).status).toBe(200)
  const [delivery] = await deliveries(box, webhook.id)
  await box.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}/redeliver`)
  const [, again] = await sink.until(2, ({ path }) => path === '/mail')
  expect(again!.body.id).toBe(told!.body.id)
  expect(again!.body.data).toEqual({ id, deleted: true })
})

test('for 24 hours after a rotation both secrets verify, then only the new one', async () => {
  const { box, sink, clock } = await held()
  const before = await make(box, `${sink.url}/rotated`)
  const { body: after } = await box.call('POST', `/v1/webhooks/${before.id}/secret/rotate`)
  const next = async (count: number) => {
    await box.call('POST', `/v1/webhooks/${before.id}/test`)
    const received = (await sink.until(count, ({ path }) => path === '/rotated')).at(-1)!
    return { raw: received.raw, headers: received.headers as Record<string, string> }
  }
  const during = await next(1)
  for (const secret of [before.secret, after['secret'] as string]) new Webhook(secret).verify(during.raw, during.headers)
  expect(during.headers).toHaveProperty('x-service-signature-previous')
  clock.advance(24 * hour + 1)
  const later = await next(2)
  expect(later.headers).not.toHaveProperty('x-service-signature-previous')
  expect(later.headers['webhook-signature']!.split(' ')).toHaveLength(1)
})

test('a test event reaches its webhook alone, with its own headers, whatever it asked for', async () => {
  const { box, sink } = await held()
  const webhook = await make(box, `${sink.url}/tested`, { headers: { Authorization: 'Bearer mine' } })
  await make(box, `${sink.url}/other`, { events: ['*'] })
  const answer = await box.call('POST', `/v1/webhooks/${webhook.id}/test`)
  expect(answer).toMatchObject({ status: 200, body: { event: 'webhook.test', status: 'pending', webhook_id: webhook.id } })
  const [got] = await sink.until(1)
  expect(got!.body).toMatchObject({ id: answer.body['event_id'], event: 'webhook.test', data: { webhook_id: webhook.id } })
  expect(got!.headers).toMatchObject({ authorization: 'Bearer mine', 'user-agent': expect.stringMatching(/^Pillarbox\//) })
  await box.call('POST', '/v1/identities', {})
  await sink.until(1, ({ path }) => path === '/other')
  expect(sink.received.filter(({ path }) => path === '/other').map(({ body }) => body.event)).toEqual(['identity.created'])
})

test('a dead endpoint, one that takes 30 s, one that hangs, one that drips, each with much to do: 950 healthy ones hear every event meanwhile', async () => {
  const { box, sink } = await held()
  const slow = { '/thirty': takes(30 * second), '/hangs': hangs, '/drips': drips }
  const made = new Map<string, string>()
  for (const [path, behaviour] of Object.entries(slow)) {
    sink.paths.set(path, behaviour)
    made.set(path, (await make(box, `${sink.url}${path}`)).id)
  }
  const dead = await make(box, 'http://127.0.0.1:1/')
  for (let count = 0; count < 950; count += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => make(box, `${sink.url}/healthy/${count + index}`)))
  }
  // of each more than there is room for in all, if it were theirs
  const tests = [...made.values(), dead.id].flatMap((id) => Array.from({ length: 90 }, () => `/v1/webhooks/${id}/test`))
  // the first attempts begin meanwhile
  const began = performance.now()
  await Promise.all(tests.map((path) => box.call('POST', path)))
  const begun = () => Object.keys(slow).map((path) => sink.received.filter((one) => one.path === path).length)
  await expect.poll(() => begun().every((attempts) => attempts > 0)).toBe(true)
  for (let count = 0; count < 3; count += 1) await box.call('POST', '/v1/identities', { name: `Agent ${count}` })
  const heard = await sink.until(2850, ({ path }) => path.startsWith('/healthy/'))
  expect(new Set(heard.map(({ path, body }) => `${path} ${body.id}`)).size).toBe(2850)
  // the healthy ones waited for none of these: of each one attempt at a time is under way, and ends after 15 s
  const rounds = 1 + Math.floor((performance.now() - began) / (15 * second))
  for (const attempts of begun()) expect(attempts).toBeLessThanOrEqual(rounds)
  const first = rounds === 1 ? { number: 1, status: 'pending', ended_at: null } : { number: 1 }
  for (const id of made.values()) expect((await deliveries(box, id, '?offset=92'))[0].attempts[0]).toMatchObject(first)
  expect((await deliveries(box, dead.id, '?offset=92'))[0]).toMatchObject({
    status: 'pending',
    attempts: [{ status: 'failed', error: 'the connection was refused' }],
  })
  // and what comes after 30 s, or never, has failed after 15
  for (const id of made.values()) {
    await expect
      .poll(async () => (await deliveries(box, id, '?offset=92'))[0], { interval: 200 })
      .toMatchObject({ status: 'pending', attempts: [{ status: 'failed', error: 'no complete response within 15 s' }] })
  }
})

test('a delivery is read with what is posted, by who may read the event', async () => {
  const box = await appliance(near)
  const sink = await WebhookSink.start()
  const webhook = await make(box, `${sink.url}/mail`, { events: ['email.received'] })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada['email'], raw: message({ Subject: 'Hush' }, 'a secret\n') })
  const [received] = await sink.until(1)
  const [delivery] = await deliveries(box, webhook.id)
  const path = `/v1/webhooks/${webhook.id}/deliveries/${delivery.id}`
  const { body: whole } = await box.call('GET', path)
  expect(whole['request']).toEqual({ url: `${sink.url}/mail`, body: received!.raw })
  const { body: key } = await box.call('POST', '/v1/api-keys', { scopes: ['account:read', 'identities:read'] })
  const { body: less } = await box.call('GET', path, undefined, { key: key['key'] })
  expect(less).toMatchObject({ id: delivery.id, request: { url: `${sink.url}/mail`, body: null } })
  const { body: emails } = await box.call('GET', `/v1/identities/${ada['id']}/emails`)
  await box.call('DELETE', `/v1/identities/${ada['id']}/emails/${emails.data[0].id}?purge=true`)
  const { body: after } = await box.call('GET', path)
  expect(JSON.stringify(after)).not.toContain('a secret')
})
