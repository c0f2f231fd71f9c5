import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { movable } from '../support/held-clock.ts'
import { refusal } from '../support/handshake.ts'
import { live } from '../support/live.ts'
import { type Browser, person, signIn, withPassword } from '../support/people.ts'

const unlimited = { PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' }

test('sockets and tokens of a session end with it: signed out, signed out from elsewhere, password changed, expired', async () => {
  const clock = movable()
  const box = await appliance({ ...unlimited, PILLARBOX_HTTP__SESSION_LIFETIME: '2 h' }, clock)
  await withPassword(box)
  const [signedOut, elsewhere, keeper] = [await signIn(box), await signIn(box), await signIn(box)]
  const [one, two, three] = [await open(signedOut), await open(elsewhere), await open(keeper)]
  await signedOut.call('DELETE', '/v1/session')
  expect((await one.socket.closed).code).toBe(4401)
  expect((await refusal(one.url)).status).toBe(401)
  await keeper.call('DELETE', '/v1/account/sessions')
  expect((await two.socket.closed).code).toBe(4401)

  const other = await open(await signIn(box))
  const changed = { current_password: person.password, password: 'a longer and quieter evening' }
  expect((await keeper.call('POST', '/v1/account/password', changed)).status).toBe(200)
  expect((await other.socket.closed).code).toBe(4401)
  // the one that changed it goes on
  await keeper.call('POST', '/v1/identities', { name: 'Ada' })
  await three.socket.until('event')
  clock.ahead = 2 * 3_600_000 + 1000
  expect((await three.socket.closed).code).toBe(4401)
})

test('a call that waits learns that its session has ended, and what it waited for is not told', async () => {
  const box = await appliance(unlimited)
  await withPassword(box)
  const page = await signIn(box)
  const other = await signIn(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const waiting = page.call('GET', `/v1/identities/${ada['id']}/wait?timeout=3`)
  const begun = async (): Promise<boolean> => (await box.app.metrics.text()).includes('pillarbox_waiting_calls 1')
  while (!(await begun())) await sleep(10)
  await other.call('DELETE', '/v1/account/sessions')
  const told = await waiting
  expect([told.status, told.body.error['code']]).toEqual([401, 'session_ended'])
})

test('a secret that one session was told is not replayed to another', async () => {
  const box = await appliance(unlimited)
  await withPassword(box)
  const [one, two] = [await signIn(box), await signIn(box)]
  const [first, again, others] = [await make(one), await make(one), await make(two)]
  expect(again.body['key']).toBe(first.body['key'])
  expect(others.body['key']).not.toBe(first.body['key'])
})

test('a person makes any key; no key makes one wider than itself because a person could', async () => {
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '600' })
  await withPassword(box)
  const page = await signIn(box)
  const wide = await page.call('POST', '/v1/api-keys', { label: 'wide', rate_limit: 0 })
  expect([wide.status, wide.body]).toMatchObject([201, { rate_limit: 0, expires_at: null }])
  const usual = await page.call('POST', '/v1/api-keys', { label: 'usual' })
  expect(usual.body).toMatchObject({ rate_limit: 600 })
  expect((await box.call('POST', '/v1/api-keys', { rate_limit: 0 }, { key: usual.body['key'] as string })).status).toBe(403)
})

test('a card is revealed to a session by POST only, and the ledger names no key', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  const { body: ada } = await page.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: made } = await page.call('POST', `/v1/identities/${ada['id']}/cards`, card({ budget_cents: 1000 }))
  // a followed link; and HEAD, which asks for no card at all
  for (const [method, status] of [
    ['GET', 403],
    ['HEAD', 404],
  ] as const) {
    expect((await page.call(method, `/v1/cards/${made['id']}/reveal?amount_cents=10`)).status).toBe(status)
  }
  expect((await page.call('GET', `/v1/cards/${made['id']}`)).body).toMatchObject({ spent_cents: 0 })
  const shown = await page.call('POST', `/v1/cards/${made['id']}/reveal`, { amount_cents: 10 })
  expect([shown.status, shown.body['card']]).toMatchObject([200, { spent_cents: 10 }])
  const { body } = await page.call('GET', `/v1/cards/${made['id']}/transactions`)
  expect(body.data[0]).toMatchObject({ key_id: null, ip: '127.0.0.1' })
})

async function open(page: Browser) {
  const { body } = await page.call('POST', '/v1/realtime/token', { expires_in: 3600 })
  const url = `${body['url']}?token=${body['token']}`
  const socket = await live(url)
  socket.say({ type: 'subscribe', channel: 'agent_events' })
  await socket.until('subscribed')
  return { socket, url }
}

function make(page: Browser) {
  return page.call('POST', '/v1/api-keys', { label: 'x' }, { headers: { 'Idempotency-Key': 'same' } })
}
