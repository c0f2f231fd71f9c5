import { expect, test } from 'vitest'
import { database, pair } from '../outbound/outgoing.ts'

test('an identity’s notes of new recipients are bounded, the oldest go first, and they go with it some at a time', async () => {
  const world = await pair()
  const { box, ada } = world
  const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  await box.call('PATCH', '/v1/policy', { preset: 'all' })
  // as a thousand calls leave, each to a hundred recipients, held and then cancelled: nothing else counts them
  database(box, (db) =>
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 101000)
      INSERT INTO contacts (identity_id, address, first_at, approved)
      SELECT '${ada.id}', 'r' || i || '@elsewhere.example', strftime('%Y-%m-%dT%H:%M:%fZ', 1000000 + i, 'unixepoch'), i = 1 FROM n`),
  )
  const noted = (condition = ''): unknown =>
    database(
      box,
      (db) => db.prepare(`SELECT count(*) AS n FROM contacts WHERE identity_id = '${ada.id}' ${condition}`).get()!['n'],
    )
  const to = Array.from({ length: 100 }, (_, index) => `new${index}@pillarbox.test`)
  const sent = await box.call('POST', `/v1/identities/${ada.id}/emails`, { to }, { key: agent.key })
  expect(sent.body['status']).toBe('held')
  expect(noted()).toBe(100_501)
  expect(noted(`AND address IN ('r0@elsewhere.example', 'r600@elsewhere.example')`)).toBe(0)
  expect(noted(`AND address IN ('r1@elsewhere.example', 'r601@elsewhere.example', 'new0@pillarbox.test')`)).toBe(3)
  expect((await box.call('DELETE', `/v1/identities/${ada.id}`)).status).toBe(200)
  expect(noted()).toBeGreaterThan(50_000)
  await box.settled()
  expect(noted()).toBe(0)
})
