import { expect, test } from 'vitest'
import { hour, iso, minute } from '../../src/core/clock.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { card as newCard } from '../support/card.ts'
import { connect } from '../support/mcp-clients.ts'

type Any = ReturnType<typeof JSON.parse>

const code = ({ status, body }: { status: number; body: { error?: { code?: string } } }): unknown => [status, body.error?.code]

const expire = (box: Appliance): Promise<void> => box.app.jobs.find(({ name }) => name === 'expire-identities')!.run()

/** A box whose clock stands still, and Ada, who lives for an hour. */
async function mortal(): Promise<{ box: Appliance; clock: HeldClock; ada: Any; at: string; end: string }> {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
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
  expect(box.logged.filter((line) => line.includes('Identity expired'))).toHaveLength(1)
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
