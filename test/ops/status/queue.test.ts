import { describe, expect, test, vi } from 'vitest'
import { appliance } from '../../support/appliance.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { MailSink } from '../../support/mail-sink.ts'
import { sendingBox } from '../../support/outgoing.ts'
import { says, WebhookSink } from '../../support/webhook-sink.ts'

const minute = 60_000

describe('mail', () => {
  test('that waits is shown with what was heard of it, and leaves when it is tried again', async () => {
    const clock = new HeldClock()
    const sink = await MailSink.start()
    sink.script = (line) => (line.startsWith('RCPT') ? '451 4.3.0 Not just now' : undefined)
    const { box, send, until } = await sendingBox(sink.port, {}, { clock })
    box.dns.mx('far.test', 'mx.far.test')
    box.dns.a('mx.far.test', '127.0.0.1')
    const id = await send('bob@far.test')
    await until(id, 'deferred')
    clock.advance(20_000)
    const { body: list } = await box.call('GET', '/v1/queue')
    expect(list.data).toMatchObject([
      {
        kind: 'email',
        destination: 'far.test',
        state: 'waiting',
        attempts: 1,
        last_answer: expect.stringContaining('Not just now'),
        about: { email_id: id, from: 'ada@pillarbox.test', to: 'bob@far.test' },
        age: 20,
        reason: null,
      },
    ])
    expect(Date.parse(list.data[0].due_at as string)).toBeGreaterThan(clock.now())
    expect((await box.call('GET', '/v1/queue?kind=email&destination=far.test&state=waiting')).body.data).toHaveLength(1)
    for (const other of ['kind=webhook', 'destination=near.test', 'state=running', 'state=done']) {
      expect([other, (await box.call('GET', `/v1/queue?${other}`)).body.data]).toEqual([other, []])
    }
    const { body: summary } = await box.call('GET', '/v1/queue/summary')
    expect(summary).toMatchObject({
      kinds: [{ kind: 'email', waiting: 1, running: 0, age: 20, due_at: list.data[0].due_at }],
      destinations: [{ kind: 'email', destination: 'far.test', waiting: 1 }],
    })
    sink.script = undefined
    const { status, body: tried } = await box.call('POST', `/v1/queue/${list.data[0].id}/retry`)
    expect([status, tried['history']]).toMatchObject([
      200,
      [{ number: 1, outcome: 'deferred', answer: expect.stringContaining('Not just now') }],
    ])
    await until(id, 'delivered')
    expect((await box.call('GET', '/v1/queue')).body.data).toEqual([])
    const again = await box.call('POST', `/v1/queue/${list.data[0].id}/retry`)
    expect([again.status, again.body.error.code]).toEqual([409, 'delivery_done'])
    expect((await box.call('DELETE', `/v1/queue/${list.data[0].id}`)).status).toBe(404)
    expect((await box.call('GET', `/v1/queue/${list.data[0].id}`)).body).toMatchObject({ state: 'done', attempts: 2 })
  })

  test('that is dropped has failed, and its sender hears why; it can be tried once more, what was deleted cannot', async () => {
    const clock = new HeldClock()
    const sink = await MailSink.start()
    sink.script = (line) => (line.startsWith('RCPT') ? '451 4.3.0 Not just now' : undefined)
    const { box, ada, send, until, events } = await sendingBox(sink.port, {}, { clock })
    box.dns.mx('far.test', 'mx.far.test')
    box.dns.a('mx.far.test', '127.0.0.1')
    const [one, other] = [await send('bob@far.test'), await send('eve@far.test')]
    await until(one, 'deferred')
    clock.advance(minute)
    await until(other, 'deferred')
    // the first may be due again, or on its way
    await box.settled()
    const { body: list } = await box.call('GET', '/v1/queue?state=waiting')
    expect(list.data).toHaveLength(2)
    const of = (id: string): string => list.data.find((entry) => entry.about.email_id === id).id
    expect((await box.call('DELETE', `/v1/queue/${of(one)}`)).body).toEqual({ id: of(one), deleted: true })
    const delivery = await until(one, 'failed')
    expect(delivery).toMatchObject({ response: 'cancelled by the operator', next_attempt_at: null })
    expect(await events(one)).toEqual(['email.deferred', 'email.failed'])
    expect((await box.call('GET', `/v1/queue/${of(one)}`)).body).toMatchObject({
      state: 'failed',
      reason: 'cancelled by the operator',
      due_at: null,
      last_answer: expect.stringContaining('Not just now'),
    })
    const before = sink.commands.length
    clock.advance(60 * minute)
    await box.call('DELETE', `/v1/identities/${ada}/emails/${other}`)
    const deleted = await box.call('POST', `/v1/queue/${of(other)}/retry`)
    expect([deleted.status, deleted.body.error.code]).toEqual([409, 'not_repeatable'])
    expect(sink.commands.slice(before).filter((line) => line.includes('bob@') || line.includes('eve@'))).toEqual([])
    sink.script = undefined
    expect((await box.call('POST', `/v1/queue/${of(one)}/retry`)).body).toMatchObject({ state: 'waiting', reason: null })
    await until(one, 'delivered')
    expect(sink.messages.map(({ to }) => to)).toEqual([['bob@far.test']])
  })

  test('that is under way is left alone', async () => {
    const sink = await MailSink.start()
    sink.script = (line) => (line.startsWith('RCPT') ? null : undefined)
    const { box, send } = await sendingBox(sink.port)
    box.dns.mx('far.test', 'mx.far.test')
    box.dns.a('mx.far.test', '127.0.0.1')
    await send('bob@far.test')
    await vi.waitFor(() => expect(sink.commands.some((line) => line.startsWith('RCPT'))).toBe(true), { timeout: 100_000 })
    const { body: list } = await box.call('GET', '/v1/queue?state=running')
    const { id } = list.data[0]
    for (const [method, path] of [
      ['POST', `/v1/queue/${id}/retry`],
      ['DELETE', `/v1/queue/${id}`],
    ] as const) {
      const { status, body } = await box.call(method, path)
      expect([method, status, body.error.code]).toEqual([method, 409, 'delivery_under_way'])
    }
  })

  test('that waits for its time has failed when it is dropped', async () => {
    const box = await appliance({}, new HeldClock())
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const input = { to: 'postmaster@pillarbox.test', send_at: '2026-11-21T10:00:00.000Z' }
    const { body: later } = await box.call('POST', `/v1/identities/${ada.id}/emails`, input)
    const { body: list } = await box.call('GET', '/v1/queue')
    expect(list.data).toMatchObject([
      { kind: 'email-release', about: { email_id: later.id }, due_at: '2026-11-21T10:00:00.000Z' },
    ])
    await box.call('DELETE', `/v1/queue/${list.data[0].id}`)
    const { body: email } = await box.call('GET', `/v1/identities/${ada.id}/emails/${later.id}`)
    expect(email).toMatchObject({ status: 'failed', deliveries: [{ response: 'cancelled by the operator' }] })
    const { body: events } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.failed`)
    expect(events.data).toHaveLength(1)
  })
})

test('a webhook that is dropped is not told, and has not failed by that', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }, new HeldClock())
  const sink = await WebhookSink.start()
  sink.behaviour = says(503)
  const { body: webhook } = await box.call('POST', '/v1/webhooks', {
    url: `${sink.url}/a-secret-path`,
    events: ['identity.created'],
  })
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.settled()
  expect((await box.call('GET', `/v1/webhooks/${webhook.id}`)).body['failing_since']).not.toBeNull()
  const { body: list } = await box.call('GET', '/v1/queue')
  expect(list.data).toMatchObject([
    {
      state: 'waiting',
      attempts: 1,
      kind: 'webhook',
      destination: webhook.id,
      last_answer: 'it answered 503',
      about: { webhook_id: webhook.id, event: 'identity.created', host: `127.0.0.1:${sink.port}` },
    },
  ])
  expect(JSON.stringify(list)).not.toContain('a-secret-path')
  const { body: before } = await box.call('GET', `/v1/webhooks/${webhook.id}`)
  await box.call('DELETE', `/v1/queue/${list.data[0].id}`)
  expect((await box.call('GET', `/v1/webhooks/${webhook.id}`)).body).toEqual(before)
  expect((await box.call('GET', `/v1/webhooks/${webhook.id}/deliveries`)).body.data).toMatchObject([
    { status: 'failed', next_attempt_at: null },
  ])
  sink.behaviour = says(200)
  await box.call('POST', `/v1/queue/${list.data[0].id}/retry`)
  await box.settled()
  expect(sink.received).toHaveLength(2)
  expect((await box.call('GET', `/v1/queue/${list.data[0].id}`)).body['state']).toBe('done')
})

test('the queue of all accounts is paged, and no other account sees it', async () => {
  const box = await appliance({}, new HeldClock())
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (let day = 21; day < 26; day += 1) {
    await box.call('POST', `/v1/identities/${ada.id}/emails`, {
      to: 'postmaster@pillarbox.test',
      send_at: `2026-11-${day}T10:00:00.000Z`,
    })
  }
  const dues: string[] = []
  for (let cursor = ''; ;) {
    const { body } = await box.call('GET', `/v1/queue?limit=2${cursor}`)
    dues.push(...body.data.map((entry) => entry.due_at as string))
    if (!body['has_more']) break
    cursor = `&cursor=${body['next_cursor']}`
  }
  expect(dues.map((due) => due.slice(8, 10))).toEqual(['25', '24', '23', '22', '21'])
  const { body: key } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
  for (const path of ['/v1/queue', '/v1/queue/summary', '/v1/status']) {
    const { status, body } = await box.call('GET', path, undefined, { key: key['key'] as string })
    expect([path, status, body.error.code]).toEqual([path, 403, 'operator_only'])
  }
})

test('the status tells what came and went in a day, what waits, and the disk', async () => {
  const clock = new HeldClock()
  const { box, send, until } = await sendingBox(1, {}, { clock })
  await until(await send('postmaster@pillarbox.test'), 'delivered')
  await box.call('POST', '/v1/webhooks', { url: 'https://receiver.test/hook', events: ['identity.created'] })
  clock.advance(60_000)
  const { body } = await box.call('GET', '/v1/status')
  expect(body).toMatchObject({
    version: expect.stringMatching(/^\d/),
    started_at: '2026-11-20T10:05:00.000Z',
    uptime: 60,
    failing: [],
    identities: 2,
    queue: [],
    last_24_hours: { emails_received: 1, emails_delivered: 1, emails_bounced: 0, sms_sent: 0 },
    disk: { free: expect.any(Number), low: false },
  })
  expect(body['disk'].database).toBeGreaterThan(100_000)
  clock.advance(86_400_000)
  expect((await box.call('GET', '/v1/status')).body['last_24_hours']).toMatchObject({ emails_received: 0, emails_delivered: 0 })
})
