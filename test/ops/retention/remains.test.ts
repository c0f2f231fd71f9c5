import { join } from 'node:path'
import { openStore } from '../../support/open-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { card } from '../../support/card.ts'
import { day, kept } from './box.ts'

test('thirty days after an identity was deleted nothing that was said of it is left, in its row or in the log', async () => {
  const { box, clock, at, ada, job, rows } = await kept()
  await box.call('PATCH', at, { name: 'canary-name', metadata: { of: 'canary-metadata' }, date_of_birth: '1990-04-17' })
  await box.call('POST', `${at}/cards`, card({ label: 'canary-card' }))
  await box.call('POST', `${at}/logins`, { label: 'canary-label', url: 'https://canary.example/', username: 'canary-name' })
  await box.call('POST', `${at}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'canary-service' })
  await box.call('POST', `${at}/events`, { type: 'negative', note: 'canary-note' })
  const { body: other } = await box.call('POST', '/v1/identities', { name: 'Bob', metadata: { of: 'Bob' } })
  const holding = (): string[] =>
    [
      'identities',
      'events',
      'hidden_events',
      'cards',
      'card_transactions',
      'totp_entries',
      'stored_logins',
      'idempotency_keys',
    ].filter((table) => /canary|1990-04-17/.test(JSON.stringify(rows(`SELECT * FROM ${table}`))))
  await box.call('DELETE', at)
  clock.advance(30 * day - 1000)
  await job('empty-trash')
  expect(holding()).toContain('identities')
  clock.advance(2000)
  await job('empty-trash')
  expect(holding()).toEqual([])
  // what happened is still counted, and the address is still nobody else's
  expect(rows(`SELECT status, email FROM identities WHERE id = '${ada.id}'`)).toEqual([{ status: 'deleted', email: ada.email }])
  expect(rows(`SELECT count(*) AS n FROM events WHERE identity_id = '${ada.id}'`)[0]!['n']).toBeGreaterThan(4)
  const again = await box.call('POST', '/v1/identities', { email_username: 'ada' })
  expect([again.status, again.body.error['param']]).toEqual([409, 'email_username'])
  expect((await box.call('GET', `/v1/identities/${other.id}`)).body).toMatchObject({ name: 'Bob', metadata: { of: 'Bob' } })
  const { body: events } = await box.call('GET', `/v1/identities/${other.id}/events`)
  expect(events.data.at(-1)).toMatchObject({ type: 'identity.created', data: { metadata: { of: 'Bob' } } })
})

test('twenty thousand items in the trash of a deleted identity are forgotten in batches', async () => {
  const { box, at, ada } = await kept()
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  onTestFinished(() => database.close())
  database.exec(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
    INSERT INTO trash (id, kind, account_id, identity_id, octets, deleted_at)
      SELECT 'email_' || n, 'email', (SELECT account_id FROM identities LIMIT 1), '${ada.id}', 300, '2026-11-20' FROM numbers`)
  const left = (): unknown => database.prepare('SELECT count(*) AS n FROM trash').get()!['n']
  await box.call('DELETE', at)
  expect(left()).toBeGreaterThan(0)
  await expect.poll(left, { timeout: 100_000 }).toBe(0)
})

test('a thousand cards of a deleted identity, and their transactions, are cleared a hundred at a time', async () => {
  const { box, clock, at, ada, job, rows } = await kept()
  await box.call('DELETE', at)
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  onTestFinished(() => database.close())
  const numbers = 'WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)'
  database.exec(`${numbers} INSERT INTO cards (id, account_id, identity_id, card_name, last4, brand, exp_month, exp_year, status, currency, period,
      budget_cents, created_at, updated_at) SELECT 'card_' || n, account_id, id, 'x', '4242', 'visa', 12, 2030, 'cancelled', 'usd', 'one_time', 100, '2026',
      '2026' FROM numbers, identities WHERE id = '${ada.id}';
    ${numbers} INSERT INTO card_transactions (id, card_id, type, allowed, ip, user_agent, spent_cents, round, created_at)
      SELECT 'tx_' || n, 'card_' || (n / 300 + 1), 'reveal', 1, '', '', 0, 0, '2026' FROM numbers;
    CREATE TABLE cleared (card TEXT);
    CREATE TABLE before_transaction (cards INTEGER);
    CREATE TRIGGER clearing BEFORE UPDATE OF card_name ON cards BEGIN INSERT INTO cleared VALUES (new.id); END;
    CREATE TRIGGER deleting BEFORE DELETE ON card_transactions
      BEGIN INSERT INTO before_transaction SELECT count(*) FROM cleared; END`)
  clock.advance(31 * day)
  await job('empty-trash')
  expect(rows("SELECT count(*) AS n FROM cards WHERE card_name <> '' OR last4 <> '' OR brand <> ''")).toEqual([{ n: 0 }])
  expect(rows('SELECT count(*) AS n FROM card_transactions')).toEqual([{ n: 0 }])
  // each card goes with its transactions: not all of them at the end, and none is looked at again
  expect(rows('SELECT DISTINCT cards FROM before_transaction ORDER BY cards')).toEqual([
    { cards: 0 },
    { cards: 1 },
    { cards: 2 },
    { cards: 3 },
  ])
  expect(rows('SELECT count(*) AS n, count(DISTINCT card) AS cards FROM cleared')).toEqual([{ n: 1000, cards: 1000 }])
})
