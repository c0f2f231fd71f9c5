import { afterAll, describe, expect, test, vi } from 'vitest'
import { appliance, type Appliance, deliver, message, openAppliance } from '../../support/appliance.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { Queue } from '../../../src/queue/queue.ts'
import { MailSink } from '../../support/mail-sink.ts'
import { sendingBox } from '../../support/outgoing.ts'
import { says, WebhookSink } from '../../support/webhook-sink.ts'

// the box's clock stands at 10:05:00 on 20 November 2026
const minute = 60_000

/** A minute goes by, and the box writes down what it was. */
async function pass({ app }: Pick<Appliance, 'app'>, clock: HeldClock): Promise<void> {
  clock.advance(minute)
  await app.jobs.find(({ name }) => name === 'note-figures')!.run()
}

async function series({ call }: Pick<Appliance, 'call'>, query = ''): Promise<Record<string, unknown>[]> {
  const { status, body } = await call('GET', `/v1/stats${query}`)
  expect([status, body.error]).toEqual([200, undefined])
  return body['series'] as Record<string, unknown>[]
}

test('a minute tells what came in, what was refused, what happened and what was asked', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const raw = message({ To: 'ada@pillarbox.test', Subject: 'Hello' }, 'Hello\n')
  expect(await deliver(box.smtp, { to: ada['email'] as string, raw })).toMatch(/^250/)
  expect(await deliver(box.smtp, { to: 'nobody@pillarbox.test', raw })).toMatch(/^550/)
  await pass(box, clock)
  const { body } = await box.call('GET', '/v1/stats?from=2026-11-20T10:05:00Z&to=2026-11-20T10:06:00Z')
  expect(body).toEqual({
    from: '2026-11-20T10:05:00.000Z',
    to: '2026-11-20T10:06:00.000Z',
    step: 'minute',
    series: [
      {
        at: '2026-11-20T10:05:00.000Z',
        mail_in: 1,
        mail_refused: 1,
        mail_delivered: 0,
        mail_failed: 0,
        events: 2,
        webhooks_done: 0,
        webhooks_failed: 0,
        api_calls: 1,
        queue_depth: 0,
        oldest_due: 0,
        disk_free: expect.any(Number),
        database: expect.any(Number),
      },
    ],
  })
  const [first] = body['series'] as Record<string, number>[]
  expect(first!['database']).toBeGreaterThan(100_000)
  // the next minute begins from nothing: the call above and the next one are all, and one event
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  // several boxes hear an event a moment after it is stored
  await box.settled()
  await pass(box, clock)
  expect((await series(box)).at(-1)).toMatchObject({ mail_in: 0, mail_refused: 0, events: 1, api_calls: 2 })
})

test('mail that leaves, or is given up, and what waits for how long', async () => {
  const clock = new HeldClock()
  const sink = await MailSink.start()
  sink.script = (line) => {
    if (line.startsWith('RCPT') && line.includes('bob@')) return '451 4.3.0 Not just now'
    return line.startsWith('RCPT') && line.includes('eve@') ? '550 5.1.1 No such user' : undefined
  }
  const { box, send, until } = await sendingBox(sink.port, {}, { clock })
  box.dns.mx('far.test', 'mx.far.test')
  box.dns.a('mx.far.test', '127.0.0.1')
  await until(await send('carol@far.test'), 'delivered')
  await until(await send('eve@far.test'), 'bounced')
  await until(await send('bob@far.test'), 'deferred')
  // from here on the queue is not woken, also not by the job of each minute: what is due is late
  await box.settled()
  vi.spyOn(Queue.prototype, 'wake').mockReturnValue()
  await pass(box, clock)
  const soon = (await series(box)).at(-1)!
  expect(soon).toMatchObject({ mail_delivered: 1, mail_failed: 1, queue_depth: 1 })
  // it is tried again after a minute, a fifth less or more
  expect(soon['oldest_due']).toBeLessThanOrEqual(12)
  clock.advance(2 * 60 * minute)
  await pass(box, clock)
  const late = (await series(box)).at(-1)!
  expect(late).toMatchObject({ mail_delivered: 0, mail_failed: 0, queue_depth: 1 })
  expect(late['oldest_due']).toBeGreaterThan(30 * 60)
})

test('webhooks that are taken count as done', async () => {
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }, clock)
  const sink = await WebhookSink.start()
  sink.behaviour = says(200)
  await box.call('POST', '/v1/webhooks', { url: `${sink.url}/hook`, events: ['identity.created'] })
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await vi.waitFor(async () => expect((await box.call('GET', '/v1/queue?state=done')).body.data).toHaveLength(1), 100_000)
  await pass(box, clock)
  expect((await series(box)).at(-1)).toMatchObject({ webhooks_done: 1, webhooks_failed: 0, mail_delivered: 0 })
})

test('a minute is written once; what was counted since is told with the next', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await pass(box, clock)
  const [before] = await series(box, '?from=2026-11-20T10:05:00Z')
  // once more in the same minute
  clock.advance(-minute)
  await pass(box, clock)
  expect((await series(box, '?from=2026-11-20T10:05:00Z'))[0]).toEqual(before)
  await pass(box, clock)
  expect((await series(box)).at(-1)).toMatchObject({ at: '2026-11-20T10:06:00.000Z', api_calls: 2 })
})

test('after a restart it goes on, nothing is counted twice, and a gap shows as null', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await pass(box, clock)
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  clock.advance(20_000)
  // the minute that it does not see the end of is written as it stops
  await box.restart()
  clock.advance(-20_000)
  clock.advance(3 * minute)
  await box.call('POST', '/v1/identities', { name: 'Eve' })
  await pass(box, clock)
  const told = await series(box, '?from=2026-11-20T10:05:00Z&to=2026-11-20T10:11:00Z')
  expect(told.map(({ at, api_calls, queue_depth }) => [String(at).slice(11, 16), api_calls, queue_depth])).toEqual([
    ['10:05', 1, 0],
    ['10:06', 1, 0],
    ['10:07', null, null],
    ['10:08', null, null],
    ['10:09', 1, 0],
    ['10:10', null, null],
  ])
})

test('an hour is the sum of its minutes, of what stands the worst; what is older than a week is gone', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  for (const name of ['Ada', 'Bob']) {
    await box.call('POST', '/v1/identities', { name })
    await pass(box, clock)
  }
  const minutes = (await series(box, '?from=2026-11-20T10:05:00Z')) as Record<string, number>[]
  const hours = await series(box, '?step=hour&from=2026-11-20T09:30:00Z&to=2026-11-20T10:30:00Z')
  expect(hours.map(({ at, api_calls }) => [at, api_calls])).toEqual([
    ['2026-11-20T09:00:00.000Z', null],
    ['2026-11-20T10:00:00.000Z', 2],
  ])
  expect(hours[1]).toMatchObject({
    disk_free: Math.min(...minutes.map((one) => one['disk_free']!)),
    database: Math.max(...minutes.map((one) => one['database']!)),
    events: minutes[0]!['events']! + minutes[1]!['events']!,
  })
  clock.advance(7 * 24 * 60 * minute)
  await pass(box, clock)
  const [first, second] = await series(box, '?step=hour&from=2026-11-20T10:00:00Z&to=2026-11-20T11:00:00Z')
  expect([first!['api_calls'], second]).toEqual([null, undefined])
  const last = await series(box)
  expect(last.at(-1)).toMatchObject({ at: '2026-11-27T10:07:00.000Z', mail_in: 0 })
})

describe('who asks', async () => {
  const { box, close } = await openAppliance({}, new HeldClock())
  afterAll(close)

  test('unless asked it tells the last hour by minutes, the last day by hours; a week of hours fits', async () => {
    expect(await series(box)).toHaveLength(60)
    // 10:05 to 10:05 touches 25 hours
    expect(await series(box, '?step=hour')).toHaveLength(25)
    expect(await series(box, '?step=hour&from=2026-11-13T10:00:00Z&to=2026-11-20T10:00:00Z')).toHaveLength(168)
    expect(await series(box, '?from=2026-11-19T10:00:00Z&to=2026-11-20T11:00:00%2B01:00')).toHaveLength(1440)
  })

  test('what does not fit is refused with a sentence', async () => {
    const wrong = [
      ['from=yesterday', 'from', 'ISO 8601'],
      ['to=2026-11', 'to', 'ISO 8601'],
      ['from=2026-11-20T10:00:00Z&to=2026-11-20T10:00:00Z', 'from', 'earlier than to'],
      ['from=2026-11-21T10:00:00Z', 'from', 'earlier than to'],
      ['from=2026-11-18T10:00:00Z', 'from', 'a day of minutes'],
      ['step=hour&from=2026-11-01T10:00:00Z', 'from', 'a week of hours'],
      ['step=day', 'step', 'minute or hour'],
      ['since=1', 'since', ''],
    ] as const
    for (const [query, parameter, words] of wrong) {
      const { status, body } = await box.call('GET', `/v1/stats?${query}`)
      expect([query, status, body.error['param']]).toEqual([query, 400, parameter])
      expect(body.error['message']).toContain(words)
    }
  })

  test('it is the operator’s alone', async () => {
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const { body: key } = await box.call('POST', '/v1/api-keys', { identity_id: ada['id'] })
    const { status, body } = await box.call('GET', '/v1/stats', undefined, { key: key['key'] as string })
    expect([status, body.error['code']]).toEqual([403, 'operator_only'])
  })
})
