import { expect, test } from 'vitest'
import { database, pair } from '../outbound/outgoing.ts'
import { hour, reporting } from '../reporting/box.ts'
import { deliver, message } from '../support/appliance.ts'

type Any = ReturnType<typeof JSON.parse>

test('an identity’s notes of new recipients are bounded, the oldest go first, and they go with it some at a time', async () => {
  const world = await pair()
  const { box, ada } = world
  const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  await box.call('PATCH', '/v1/policy', { preset: 'all', rules: [{ when: { to: ['new'] }, action: 'send' }] })
  // as a thousand calls leave, each to a hundred recipients, and then cancelled: nothing else counts them
  database(box, (db) =>
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 101000)
      INSERT INTO contacts (identity_id, address, first_at, approved)
      SELECT '${ada.id}', 'r' || i || '@elsewhere.example', '2020-01-01T00:00:00.' || printf('%06d', i) || 'Z', CASE WHEN i = 1 THEN 1 ELSE 0 END FROM n`),
  )
  const noted = (condition = ''): unknown =>
    database(
      box,
      (db) => db.prepare(`SELECT count(*) AS n FROM contacts WHERE identity_id = '${ada.id}' ${condition}`).get()!['n'],
    )
  const to = Array.from({ length: 100 }, (_, index) => `new${index}@pillarbox.test`)
  const sent = await box.call('POST', `/v1/identities/${ada.id}/emails`, { to }, { key: agent.key })
  expect(sent.body['status']).toBe('queued')
  expect(noted()).toBe(100_501)
  expect(noted(`AND address IN ('r0@elsewhere.example', 'r600@elsewhere.example')`)).toBe(0)
  expect(noted(`AND address IN ('r1@elsewhere.example', 'r601@elsewhere.example', 'new0@pillarbox.test')`)).toBe(3)
  expect((await box.call('DELETE', `/v1/identities/${ada.id}`)).status).toBe(200)
  expect(noted()).toBeGreaterThan(50_000)
  await box.settled()
  expect(noted()).toBe(0)
})

/** An agent of Ada's, whom a stranger whose domain DMARC verifies writes to. */
async function besideStranger() {
  const world = await reporting({})
  const { box, ada } = world
  box.dns.txt('stranger.example', 'v=spf1 ip4:127.0.0.1 -all').txt('_dmarc.stranger.example', 'v=DMARC1; p=reject')
  box.dns.mx('stranger.example', 'mx.stranger.example').a('mx.stranger.example', '127.0.0.1')
  const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent', identity_id: ada })
  const send = async (input: object): Promise<Any> =>
    (await box.call('POST', `/v1/identities/${ada}/emails`, { subject: 'Out', ...input }, { key: agent['key'] })).body
  return { ...world, send }
}

test('who was set aside is not known, nor answered, until a person releases the message', async () => {
  const { box, ada, send } = await besideStranger()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  await box.call('PATCH', `/v1/identities/${ada}/senders`, { allow: ['@friend.example'] })
  const raw = message({ From: 'x@stranger.example', Subject: 'Hello', 'Message-ID': '<1@stranger.example>' }, 'Hello.\r\n')
  const to = ['ada@pillarbox.test', bob['email'] as string]
  expect(await deliver(box.smtp, { from: 'x@stranger.example', to, raw })).toMatch(/^250 /)
  const { body } = await box.call('GET', `/v1/identities/${ada}/emails?spam=true`)
  const { id, verified_domain } = body.data[0]
  expect(verified_domain).toBe('stranger.example')
  await box.call('PATCH', '/v1/policy', { preset: 'known' })
  expect((await send({ to: 'x@stranger.example' })).status).toBe('held')
  await box.call('PATCH', '/v1/policy', { preset: 'all', rules: [{ when: { reply: 'verified' }, action: 'send' }] })
  expect((await send({ to: 'x@stranger.example', in_reply_to: id })).status).toBe('held')
  expect((await box.call('POST', `/v1/identities/${ada}/emails/${id}/release`)).status).toBe(200)
  expect((await send({ to: 'x@stranger.example', in_reply_to: id })).status).toBe('queued')
})

test('recipients of a message that was rejected are as new the next day', async () => {
  const { box, clock, send } = await besideStranger()
  await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { new_per_day_over: 2 }, action: 'hold' }] })
  const to = ['x', 'y', 'z'].map((name) => `${name}@stranger.example`)
  const { hold } = await send({ to })
  expect((await box.call('POST', `/v1/holds/${hold.id}/reject`, {})).status).toBe(200)
  clock.advance(25 * hour)
  expect((await send({ to })).status).toBe('held')
})

test('those that a person approved are bounded too, and are forgotten last', async () => {
  const { box, ada } = await pair()
  const count = (condition: string): unknown =>
    database(
      box,
      (db) => db.prepare(`SELECT count(*) AS n FROM contacts WHERE identity_id = '${ada.id}' ${condition}`).get()!['n'],
    )
  database(box, (db) =>
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 101000)
      INSERT INTO contacts (identity_id, address, first_at, approved)
      SELECT '${ada.id}', 'r' || i || '@elsewhere.example', '2020-01-01T00:00:00.' || printf('%06d', i) || 'Z', CASE WHEN i <> 7 THEN 1 ELSE 0 END FROM n`),
  )
  const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  await box.call('PATCH', '/v1/policy', { preset: 'all' })
  const to = 'new@pillarbox.test'
  const { body: sent } = await box.call('POST', `/v1/identities/${ada.id}/emails`, { to }, { key: agent.key })
  const { status } = await box.call('POST', `/v1/holds/${sent.hold.id}/approve`, {})
  expect(status).toBe(200)
  expect(count('')).toBeLessThanOrEqual(101_000)
  expect(count(`AND approved = 1 AND address = '${to}'`)).toBe(1)
  expect(count(`AND address IN ('r0@elsewhere.example', 'r7@elsewhere.example')`)).toBe(0)
  expect(count(`AND address = 'r100999@elsewhere.example'`)).toBe(1)
})

const rules = (many: number): object[] =>
  Array.from({ length: 10 }, (_, rule) => ({
    when: { to: Array.from({ length: many }, (_none, index) => `${'a'.repeat(60)}${rule}.${index}@${'b'.repeat(60)}.example`) },
    action: 'hold',
  }))

test('a policy has at most 64 KiB', async () => {
  const { box, ada } = await pair()
  for (const path of ['/v1/policy', `/v1/identities/${ada.id}/policy`]) {
    expect((await box.call('PATCH', path, { rules: rules(40) })).status).toBe(200)
    const { status, body } = await box.call('PATCH', path, { rules: rules(60) })
    expect([status, body.error['param']]).toEqual([400, 'rules'])
  }
})
