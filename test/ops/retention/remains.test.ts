import { expect, test } from 'vitest'
import { card } from '../../support/card.ts'
import { day, kept } from './box.ts'

test('thirty days after an identity was deleted nothing that was said of it is left, in its row or in the log', async () => {
  const { box, clock, at, ada, job, rows } = await kept()
  await box.call('PATCH', at, { name: 'canary-name', metadata: { of: 'canary-metadata' }, date_of_birth: '1990-04-17' })
  await box.call('POST', `${at}/cards`, card({ label: 'canary-card' }))
  await box.call('POST', `${at}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'canary-service' })
  await box.call('POST', `${at}/events`, { type: 'negative', note: 'canary-note' })
  const { body: other } = await box.call('POST', '/v1/identities', { name: 'Bob', metadata: { of: 'Bob' } })
  const holding = (): string[] =>
    ['identities', 'events', 'hidden_events', 'cards', 'card_transactions', 'totp_entries', 'idempotency_keys'].filter((table) =>
      /canary|1990-04-17/.test(JSON.stringify(rows(`SELECT * FROM ${table}`))),
    )
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
