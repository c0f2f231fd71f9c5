import { describe, expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import { deliver, message } from '../support/appliance.ts'
import { allAttempts } from '../support/attempts.ts'
import { HeldClock } from '../support/held-clock.ts'
import { database, field, pair, type Pair, send, source, verified } from './outgoing.ts'

const tomorrow = '2026-11-21T09:30:00.000Z'

describe('a scheduled message', () => {
  test('waits, is dated when it leaves, and leaves then', async () => {
    const clock = new HeldClock()
    const world = await pair({}, clock)
    const { body } = await send(world, { to: world.bob.email, subject: 'later', send_at: '2026-11-21T10:30:00+01:00' })
    expect(body).toMatchObject({
      status: 'scheduled',
      send_at: tomorrow,
      deliveries: [{ status: 'scheduled', next_attempt_at: tomorrow }],
    })
    expect(field(await source(world, body.id), 'date')).toBe('Sat, 21 Nov 2026 09:30:00 +0000')
    expect(copies(world)).toBe(0)
    clock.advance(24 * 3_600_000)
    await world.box.settled()
    expect((await shown(world, body.id)).status).not.toBe('scheduled')
    expect(copies(world)).toBe(1)
    expect(field(await source(world, body.id), 'date')).toBe('Sat, 21 Nov 2026 09:30:00 +0000')
    expect((await shown(world, body.id)).send_at).toBe(tomorrow)
  })

  test('can be put to another time: its date follows, and nothing else changes', async () => {
    const clock = new HeldClock()
    const world = await pair({}, clock)
    const { body } = await send(world, { to: [world.bob.email, 'zoe@pillarbox.test'], body: 'later', send_at: tomorrow })
    const before = await source(world, body.id)
    const moved = await change(world, body.id, { send_at: '2026-11-25T12:00:00Z' })
    expect([moved.status, moved.body]).toMatchObject([
      200,
      {
        status: 'scheduled',
        send_at: '2026-11-25T12:00:00.000Z',
        deliveries: [1, 2].map(() => ({ next_attempt_at: '2026-11-25T12:00:00.000Z' })),
      },
    ])
    const after = await source(world, body.id)
    expect(field(after, 'date')).toBe('Wed, 25 Nov 2026 12:00:00 +0000')
    expect(after.replace(/^Date: .*\r\n/m, '')).toBe(before.replace(/^Date: .*\r\n/m, ''))
    clock.advance(2 * 86_400_000)
    await world.box.settled()
    expect((await shown(world, body.id)).status).toBe('scheduled')
    clock.advance(4 * 86_400_000)
    await world.box.settled()
    expect(copies(world)).toBe(2)
  })

  test('leaves at once when it is put to the past', async () => {
    const world = await pair({}, new HeldClock())
    const { body } = await send(world, { to: world.bob.email, send_at: tomorrow })
    await change(world, body.id, { send_at: '2026-11-20T00:00:00Z' })
    await world.box.settled()
    expect(copies(world)).toBe(1)
    expect(field(await source(world, body.id), 'date')).toBe('Fri, 20 Nov 2026 10:05:00 +0000')
  })

  test('no more than a year ahead; a time that has passed is now', async () => {
    const world = await pair({}, new HeldClock())
    const far = await send(world, { to: world.bob.email, send_at: '2027-12-01T00:00:00Z' })
    expect([far.status, far.body.error['param']]).toEqual([400, 'send_at'])
    const past = await send(world, { to: world.bob.email, send_at: '2026-11-01T00:00:00Z' })
    expect(past.body).toMatchObject({ status: 'queued', send_at: null })
    const late = await change(world, past.body.id, { send_at: tomorrow })
    expect([late.status, late.body.error['code']]).toEqual([409, 'not_scheduled'])
  })

  test('a message that came has no time to leave', async () => {
    const world = await pair({}, new HeldClock())
    await deliver(world.box.smtp, { to: world.ada.email, raw: message({ Subject: 'x' }, 'y') })
    const list = await world.box.call('GET', `/v1/identities/${world.ada.id}/emails`)
    const body = list.body.data[0]
    expect((await change(world, body.id, { send_at: tomorrow })).status).toBe(409)
    const cancelled = await world.box.call('POST', `/v1/identities/${world.ada.id}/emails/${body.id}/cancel`)
    expect([cancelled.status, cancelled.body.error.code]).toEqual([409, 'not_cancellable'])
  })
})

describe('taken back', () => {
  test('what is scheduled is cancelled, told, never sent, and cancelled once', async () => {
    const clock = new HeldClock()
    const world = await pair({ PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '2' }, clock)
    const { box, ada, bob } = world
    const { body } = await send(world, { to: [bob.email, 'zoe@pillarbox.test'], send_at: tomorrow })
    expect((await send(world, { to: bob.email, send_at: tomorrow })).status).toBe(429)
    const cancelled = await box.call<Email>('POST', `/v1/identities/${ada.id}/emails/${body.id}/cancel`)
    expect([cancelled.status, cancelled.body]).toMatchObject([
      200,
      { id: body.id, status: 'cancelled', deliveries: [{ status: 'cancelled', next_attempt_at: null }, { status: 'cancelled' }] },
    ])
    expect((await box.call('POST', `/v1/identities/${ada.id}/emails/${body.id}/cancel`)).body.error.code).toBe('not_cancellable')
    const events = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.cancelled`)
    expect(events.body.data).toMatchObject([{ data: { id: body.id, status: 'cancelled' } }])
    // what it had taken of the rate is given back
    expect((await send(world, { to: bob.email, send_at: tomorrow })).status).toBe(201)
    clock.advance(2 * 86_400_000)
    await box.settled()
    expect(copies(world)).toBe(1)
    expect((await shown(world, body.id)).status).toBe('cancelled')
  })

  test('what is scheduled, also while its release fails; it is not released later', async () => {
    const clock = new HeldClock()
    const world = await pair({}, clock)
    const { box, ada, bob } = world
    const [back, stays] = [
      await send(world, { to: [bob.email, 'zoe@pillarbox.test'], send_at: tomorrow }),
      await send(world, { to: bob.email, send_at: tomorrow }),
    ]
    const refuse = `CREATE TRIGGER held BEFORE INSERT ON deliveries_queue BEGIN SELECT RAISE(ABORT, 'not now'); END`
    database(box, (db) => db.exec(refuse))
    clock.advance(86_400_000)
    await box.settled()
    expect(count(box, `SELECT count(*) AS n FROM ${allAttempts} WHERE outcome = 'deferred'`)).toBe(2)
    const cancelled = await box.call<Email>('POST', `/v1/identities/${ada.id}/emails/${back.body.id}/cancel`)
    expect([cancelled.status, cancelled.body]).toMatchObject([
      200,
      { status: 'cancelled', deliveries: [{ status: 'cancelled' }, { status: 'cancelled' }] },
    ])
    const again = await box.call('POST', `/v1/identities/${ada.id}/emails/${back.body.id}/cancel`)
    expect([again.status, again.body.error.code]).toEqual([409, 'not_cancellable'])
    database(box, (db) => db.exec('DROP TRIGGER held'))
    clock.advance(86_400_000)
    await box.settled()
    expect((await shown(world, stays.body.id)).status).toBe('delivered')
    expect(copies(world)).toBe(1)
    expect((await shown(world, back.body.id)).status).toBe('cancelled')
    const events = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.cancelled`)
    expect(events.body.data).toMatchObject([{ data: { id: back.body.id } }])
  })

  test('what was tried is not', async () => {
    const clock = new HeldClock()
    const world = await pair({}, clock)
    const { box, ada, bob } = world
    const { body } = await send(world, { to: bob.email })
    await box.settled()
    expect(attempts(world)).toBe(1)
    const told = await box.call('POST', `/v1/identities/${ada.id}/emails/${body.id}/cancel`)
    expect([told.status, told.body.error.code]).toEqual([409, 'not_cancellable'])
  })

  test('a deleted message is not sent, and neither is what a deleted identity had scheduled', async () => {
    const clock = new HeldClock()
    const world = await pair({}, clock)
    const { box, ada, bob } = world
    const { body: one } = await send(world, { to: bob.email, send_at: tomorrow })
    const { body: other } = await send(world, { to: bob.email, send_at: tomorrow })
    expect(waiting(world)).toBe(2)
    await box.call('DELETE', `/v1/identities/${ada.id}/emails/${one.id}`)
    expect(waiting(world)).toBe(1)
    await box.call('DELETE', `/v1/identities/${ada.id}`)
    await box.settled()
    expect(waiting(world)).toBe(0)
    const status = database(box, (db) => db.prepare('SELECT status FROM emails WHERE id = ?').get(other.id))
    expect(status).toEqual({ status: 'cancelled' })
    const told = database(box, (db) =>
      db.prepare(`SELECT resource_id FROM events WHERE type = 'email.cancelled' ORDER BY seq`).all(),
    )
    expect(told.map((row) => row['resource_id'])).toEqual([one.id, other.id])
  })
})

test('what is scheduled counts in the hour it leaves in', async () => {
  const world = await pair({ PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '2' }, new HeldClock())
  const { bob } = world
  const [one] = [await send(world, { to: bob.email, send_at: tomorrow }), await send(world, { to: bob.email, send_at: tomorrow })]
  const full = await send(world, { to: bob.email, send_at: tomorrow })
  expect([full.status, full.body.error.message]).toEqual([
    429,
    'One identity may send to 2 recipients an hour (outbound.rate_per_identity). Choose another send_at.',
  ])
  expect((await send(world, { to: bob.email })).status).toBe(201)
  await change(world, one.body.id, { send_at: '2026-11-22T09:30:00Z' })
  expect((await send(world, { to: bob.email, send_at: tomorrow })).status).toBe(201)
  const back = await change(world, one.body.id, { send_at: tomorrow })
  expect(back.status).toBe(429)
  expect((await shown(world, one.body.id)).send_at).toBe('2026-11-22T09:30:00.000Z')
})

test('a message elsewhere that waited is let go when its domain is verified', async () => {
  const clock = new HeldClock()
  const world = await pair({}, clock)
  await verified(world)
  const { body } = await send(world, { to: 'eve@elsewhere.test', send_at: tomorrow })
  clock.advance(86_400_000)
  await world.box.settled()
  expect(copies(world)).toBe(1)
  expect((await shown(world, body.id)).deliveries[0]!.recipient).toBe('eve@elsewhere.test')
})

function change({ box, ada }: Pair, id: string, input: object) {
  return box.call<Email & { error: Record<string, string> }>('PATCH', `/v1/identities/${ada.id}/emails/${id}`, input)
}

async function shown({ box, ada }: Pair, id: string): Promise<Email> {
  return (await box.call<Email>('GET', `/v1/identities/${ada.id}/emails/${id}`)).body
}

/** Copies that were ever handed to the queue. */
function copies({ box }: Pair): number {
  return count(box, `SELECT count(*) AS n FROM deliveries_queue WHERE kind = 'email'`)
}

function attempts({ box }: Pair): number {
  return count(box, `SELECT coalesce(max(attempts), 0) AS n FROM deliveries_queue WHERE kind = 'email'`)
}

function waiting({ box }: Pair): number {
  return count(box, `SELECT count(*) AS n FROM deliveries_queue WHERE state = 'waiting'`)
}

function count(box: Pair['box'], query: string): number {
  return database(box, (db) => (db.prepare(query).get() as { n: number }).n)
}
