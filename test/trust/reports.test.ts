import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import type { Report, Reputation } from '../../src/trust/model.ts'
import { dailyMost } from '../../src/trust/reports.ts'
import { type Appliance, type Call, openAppliance } from '../support/appliance.ts'
import { movable } from '../support/held-clock.ts'
import { anotherAccount, somebody, type Somebody } from './accounts.ts'

const day = 86_400_000
const clock = movable()
let box: Appliance
let close: () => Promise<void>
let other: Call
let ada: Somebody
let bob: Somebody
let made = 0

beforeAll(async () => {
  ;({ box, close } = await openAppliance({}, clock))
  other = await anotherAccount(box)
  ada = await somebody(box.call, 'Ada')
  bob = await somebody(other, 'Bob')
})
afterAll(() => close())

describe('a report about another account’s agent', () => {
  test.each(['id', 'did', 'handle', 'email'] as const)('finds it by %s, counts, and is told to both', async (by) => {
    const cyd = await subject()
    const about = by === 'email' ? cyd.email.replace('@', '+tag@').toUpperCase() : cyd.agent[by]
    const input = { type: 'positive', about, weight: 3, note: 'Booked the table.', data: { order: 7 } }
    const { status, body } = await report(input)
    const whole = {
      ...input,
      id: expect.stringMatching(/^rep_/) as string,
      direction: 'given',
      subject: cyd.agent.did,
      counted_weight: 3,
      created_at: expect.any(String) as string,
    }
    expect([status, body]).toEqual([201, whole])
    const counted = await counts(cyd, { positive: 3 })
    expect(counted.score).toBe(0.5 + Math.round((0.13 * 3 * 10_000) / 23) / 10_000)
    expect(await heard(box.call, ada.id, 'reputation.reported')).toContainEqual(whole)
    const received = { ...whole, direction: 'received', about: null, note: null, data: {} }
    expect(await heard(other, cyd.id, 'reputation.reported')).toEqual([received])
    expect(await heard(other, cyd.id, 'reputation.updated')).toEqual([counted])
    const log = JSON.stringify((await other('GET', `/v1/identities/${cyd.id}/events`)).body)
    for (const secret of ['Booked', ada.id, ada.email, ada.agent.did]) expect(log).not.toContain(secret)
  })

  test('is found by its own type, by who made it and by whom it is about', async () => {
    const cyd = await subject()
    for (const type of ['dispute', 'shop.order.paid', 'shop.order.lost']) await report({ type, about: cyd.agent.id })
    for (const type of ['dispute', 'shop.order.paid']) {
      expect(await heard(box.call, ada.id, type)).toContainEqual(expect.objectContaining({ type, subject: cyd.agent.did }))
      expect(new Set((await heard<{ type: string }>(box.call, ada.id, type)).map((one) => one.type))).toEqual(new Set([type]))
    }
    expect(await heard(other, cyd.id, 'dispute')).toMatchObject([{ type: 'dispute', direction: 'received' }])
    expect(await heard(box.call, ada.id, 'positive.negative')).toEqual([])
  })

  test('moves the score down when it is bad, by half as much when it is a dispute', async () => {
    const [one, two] = [await subject(), await subject()]
    await report({ type: 'negative', about: one.agent.id, weight: 4 })
    await report({ type: 'dispute', about: two.agent.id, weight: 4 })
    expect((await counts(one, { negative: 4 })).score).toBe(0.5 - Math.round((0.4 * 4 * 10_000) / 24) / 10_000)
    expect((await counts(two, { disputed: 4 })).score).toBe(0.5 - Math.round((0.4 * 2 * 10_000) / 22) / 10_000)
  })

  test('counts half of the one before of its type, and five a day', async () => {
    const cyd = await subject()
    const weights = []
    for (let turn = 0; turn < dailyMost + 2; turn += 1) {
      weights.push((await report({ type: 'negative', about: cyd.agent.id, weight: 4 })).body.counted_weight)
    }
    expect(weights).toEqual([4, 2, 1, 0.5, 0.25, 0, 0])
    expect((await report({ type: 'positive', about: cyd.agent.id })).body.counted_weight).toBe(0)
    clock.ahead += day
    expect((await report({ type: 'positive', about: cyd.agent.id })).body.counted_weight).toBe(1)
    expect((await report({ type: 'negative', about: cyd.agent.id, weight: 4 })).body.counted_weight).toBe(0.125)
    await counts(cyd, { negative: 7.875, positive: 1 })
    // what does not count is not told either
    expect(await heard(other, cyd.id, 'reputation.reported')).toHaveLength(dailyMost + 2)
    expect(await heard(other, cyd.id, 'reputation.updated')).toHaveLength(dailyMost + 2)
  })

  test('is kept for the score only if it counts, however many one account makes', async () => {
    const cyd = await subject()
    for (let turn = 0; turn < 20; turn += 1) {
      await report({ type: 'positive', about: cyd.agent.id })
      await report({ type: 'of my own', about: cyd.agent.id })
    }
    const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true })
    const [{ rows }] = database.prepare('SELECT count(*) AS rows FROM reputation_reports WHERE subject = ?').all(cyd.id) as [
      { rows: number },
    ]
    database.close()
    expect(rows).toBe(dailyMost)
  })

  test('counts once when it is repeated with its Idempotency-Key', async () => {
    const cyd = await subject()
    const headers = { 'Idempotency-Key': 'once' }
    const input = { type: 'positive', about: cyd.agent.id }
    const [one, two] = [await report(input, ada, headers), await report(input, ada, headers)]
    expect(two.body).toEqual(one.body)
    await counts(cyd, { positive: 1 })
    expect(await heard(other, cyd.id, 'reputation.reported')).toHaveLength(1)
  })

  test('of a name of one’s own is kept by the reporter alone', async () => {
    const cyd = await subject()
    const { status, body } = await report({ type: 'task.completed', about: cyd.agent.did, weight: 5 })
    expect([status, body]).toMatchObject([201, { type: 'task.completed', weight: 5, counted_weight: 0 }])
    expect(await heard(other, cyd.id, 'reputation.reported')).toEqual([])
  })
})

describe('a report about one’s own', () => {
  test.each(['positive', 'negative', 'dispute'])('%s is shown with weight 0, and counts for nothing', async (type) => {
    const eve = await somebody(box.call, `Eve-${type}`)
    for (const [by, about] of [
      [eve, undefined],
      [ada, eve.id],
      [ada, eve.email],
      [ada, eve.agent.handle],
    ] as const) {
      const { status, body } = await report({ type, weight: 5, ...(about === undefined ? {} : { about }) }, by)
      expect([status, body]).toMatchObject([201, { weight: 0, counted_weight: 0, subject: eve.agent.did }])
    }
    expect(await heard(box.call, eve.id, 'reputation.reported')).toMatchObject([{ type, weight: 0, direction: 'given' }])
    const { body } = await box.call<Reputation>('GET', `/v1/identities/${eve.id}/reputation`)
    expect([body.score, body.counters['positive'], body.counters['negative']]).toEqual([0.5, 0, 0])
  })
})

describe('about', () => {
  test('a stranger is kept under one spelling, and counts the same', async () => {
    for (const [about, name] of [
      ['did:web:other.test:v1:agents:x', 'did:web:other.test:v1:agents:x'],
      ['Sam@BÜCHER.test', 'sam@xn--bcher-kva.test'],
      // no identity of the box, or one that is nobody's business: the same
      ['nobody@pillarbox.test', 'nobody@pillarbox.test'],
    ]) {
      const first = await report({ type: 'negative', about, weight: 2 })
      expect([first.status, first.body]).toMatchObject([201, { subject: name, counted_weight: 2 }])
      expect((await report({ type: 'negative', about, weight: 2 })).body.counted_weight).toBe(1)
    }
  })

  test('another account’s identity that is no agent is a stranger too', async () => {
    const { body: zoe } = await other('POST', '/v1/identities', { name: 'Zoe' })
    const { body } = await report({ type: 'negative', about: zoe.email, weight: 5 })
    expect(body).toMatchObject({ subject: zoe.email, counted_weight: 5 })
    expect(await heard(other, zoe.id, 'reputation.reported')).toEqual([])
    expect((await other('GET', `/v1/identities/${zoe.id}/reputation`)).body).toMatchObject({ score: 0.5, subject: zoe.id })
  })

  test('nobody of this box is refused, whether or not it is somebody’s', async () => {
    const did = bob.agent.did.replace(bob.agent.id, newId('agent'))
    for (const about of [newId('agent'), newId('ident'), bob.id, 'no-such-handle', did, 'x@y z']) {
      const { status, body } = await report({ type: 'positive', about })
      expect([about, status, body]).toMatchObject([about, 400, { error: { param: 'about', type: 'invalid_request' } }])
    }
  })

  test.each([
    [{ type: 'good' }, 'type'],
    [{ type: 'Positive' }, 'type'],
    [{ type: 'positive', weight: 6 }, 'weight'],
    [{ type: 'positive', weight: 0 }, 'weight'],
    [{ type: 'positive', note: 'x'.repeat(501) }, 'note'],
    [{ weight: 1 }, 'type'],
  ])('%j is refused', async (input, param) => {
    const { status, body } = await report(input)
    expect([status, body]).toMatchObject([400, { error: { param } }])
  })

  test('a key bound to an identity reports as that one alone, and sees no sibling', async () => {
    const sibling = await somebody(box.call, 'Sibling')
    const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada.id })
    const as = { key: bound.key as string }
    const told = (id: string, about: string) => box.call('POST', `/v1/identities/${id}/events`, { type: 'positive', about }, as)
    expect((await told(sibling.id, bob.agent.id)).status).toBe(404)
    expect((await told(ada.id, sibling.id)).status).toBe(400)
    expect((await told(ada.id, sibling.agent.id)).body).toMatchObject({ subject: sibling.agent.did, weight: 0 })
  })
})

test('reputation is 404 for another account, its agent’s too, and for what is deleted', async () => {
  const cyd = await subject()
  for (const path of [`/v1/identities/${cyd.id}/reputation`, `/v1/agents/${cyd.agent.id}/reputation`]) {
    expect((await box.call('GET', path)).status).toBe(404)
    expect((await other('GET', path)).body).toMatchObject({ subject: cyd.agent.did, score: 0.5, tier: 'bronze' })
  }
  await report({ type: 'positive', about: cyd.agent.id })
  await other('DELETE', `/v1/identities/${cyd.id}`)
  expect((await other('GET', `/v1/identities/${cyd.id}/reputation`)).status).toBe(404)
  expect((await report({ type: 'positive', about: cyd.agent.id })).status).toBe(400)
})

test('a tier that changes is told once', async () => {
  const cyd = await subject()
  const raisers = await Promise.all(Array.from({ length: 20 }, () => anotherAccount(box)))
  for (const raise of raisers) {
    const { body } = await raise('POST', '/v1/identities', {})
    await raise('POST', `/v1/identities/${body.id}/events`, { type: 'positive', about: cyd.agent.id, weight: 5 })
  }
  // 0.5 + 0.13 × 100 ÷ 120
  const { score, tier } = await counts(cyd, { positive: 100 })
  expect([score, tier]).toEqual([0.6083, 'silver'])
  const tiers = (await heard<Reputation>(other, cyd.id, 'reputation.updated')).map((one) => one.tier)
  expect(tiers.filter((one, index) => one !== tiers[index + 1])).toEqual(['silver', 'bronze'])
})

async function subject(): Promise<Somebody> {
  made += 1
  return somebody(other, `Cyd-${made}`)
}

function report(input: object, by = ada, headers: Record<string, string> = {}) {
  return box.call<Report & { error: object }>('POST', `/v1/identities/${by.id}/events`, input, { headers })
}

/** The reputation of one of the other account's, which has these counters. */
async function counts(who: Somebody, counters: Record<string, number>): Promise<Reputation> {
  await box.settled()
  const { body } = await other<Reputation>('GET', `/v1/identities/${who.id}/reputation`)
  expect(body.counters).toMatchObject(counters)
  return body
}

/** What the log tells of this type, newest first. */
async function heard<Data = unknown>(call: Call, id: string, type: string): Promise<Data[]> {
  const { body } = await call('GET', `/v1/identities/${id}/events?type=${type}&limit=200`)
  return body.data.map((event) => event.data as Data)
}
