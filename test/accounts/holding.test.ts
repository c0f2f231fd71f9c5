import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { letter } from '../contract/estate.ts'
import { appliance, type Appliance, deliver } from '../support/appliance.ts'
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

test('URLs that a session asked for end with it; of the export another session gets its own', async () => {
  const box = await appliance({ ...unlimited, PILLARBOX_HTTP__DOCUMENT_RATE_LIMIT: '0' })
  await withPassword(box)
  const has = await withFiles(box)
  const [stolen, signedOut, keeper] = [await signIn(box), await signIn(box), await signIn(box)]
  const leaked = (await make(keeper)).body
  const { body: begun } = await stolen.call('POST', `/v1/identities/${has.identity}/export`, {})
  await expect.poll(async () => (await stolen.call('GET', `/v1/jobs/${begun['id']}`)).body['status']).toBe('done')
  const [theirs, left, ours, kept] = [
    await has.urls(stolen.call),
    await has.urls(signedOut.call),
    await has.urls(keeper.call),
    await has.urls((method, path) => box.call(method, path, undefined, { key: leaked['key'] as string })),
  ]
  for (const urls of [theirs, left, ours, kept]) expect(await codes(urls)).toEqual([200, 200, 200])

  await signedOut.call('DELETE', '/v1/session')
  expect(await codes(left)).toEqual(['url_ended', 'url_ended', 'url_ended'])
  await box.call('DELETE', `/v1/api-keys/${leaked['id']}`)
  expect(await codes(kept)).toEqual(['url_ended', 'url_ended', 'url_ended'])
  expect(await codes(theirs)).toEqual([200, 200, 200])
  await keeper.call('DELETE', '/v1/account/sessions')
  expect(await codes(theirs)).toEqual(['url_ended', 'url_ended', 'url_ended'])
  expect(await codes(ours)).toEqual([200, 200, 200])
  const unsaid = new URL(theirs[2]!)
  unsaid.searchParams.delete('by')
  expect(await codes([unsaid.href])).toEqual(['bad_signature'])

  await withPassword(box)
  expect(await codes(ours)).toEqual(['url_ended', 'url_ended', 'url_ended'])
  expect(await codes(await has.urls((await signIn(box)).call))).toEqual([200, 200, 200])
})

test('URLs of a session that expires end with it, as those of a key do, and not before', async () => {
  const clock = movable()
  const box = await appliance({ ...unlimited, PILLARBOX_HTTP__SESSION_IDLE: '10 min' }, clock)
  await withPassword(box)
  const has = await withFiles(box)
  const page = await signIn(box)
  await page.call('POST', `/v1/identities/${has.identity}/export`, {})
  await expect.poll(async () => (await page.call('GET', '/v1/jobs')).body.data[0]!.status).toBe('done')
  const urls = await has.urls(page.call)
  clock.ahead = 9 * 60_000
  expect(await codes(urls)).toEqual([200, 200, 200])
  // whoever goes on with the session goes on with its URLs
  await page.call('GET', '/v1/identities')
  clock.ahead = 14 * 60_000
  expect(await codes(urls)).toEqual([200, 200, 200])
  clock.ahead = 20 * 60_000
  expect(await codes(urls)).toEqual(['url_expired', 'url_expired', 'url_ended'])
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

/** An identity with an attachment and a picture; `urls` asks for the URLs of those, and of the newest export. */
async function withFiles(box: Appliance) {
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  await deliver(box.smtp, { to: ada['email'] as string, raw: letter('Ada') })
  const media = [{ content_type: 'image/png', content: Buffer.from('a picture').toString('base64') }]
  const text = { from: '+15550100199', to: ada['phone_number'], body: 'See', media }
  const { body: sms } = await box.call('POST', '/v1/sms/loopback/inject', text)
  const { body: list } = await box.call('GET', `/v1/identities/${ada['id']}/emails`)
  const places = [`emails/${list.data[0]!.id}/attachments/0`, `sms/${sms['id']}/media/0`]
  const urls = async (call: Browser['call']): Promise<string[]> => {
    const found = await Promise.all(places.map((place) => call('GET', `/v1/identities/${ada['id']}/${place}`)))
    const { body: jobs } = await call('GET', '/v1/jobs?kind=export')
    return [...found.map(({ body }) => body['url'] as string), jobs.data[0]!.result.url as string]
  }
  return { identity: ada['id'] as string, urls }
}

/** What each URL is answered. */
function codes(urls: string[]): Promise<unknown[]> {
  return Promise.all(urls.map(codeOf))
}

/** 200, or the code of the error. */
async function codeOf(url: string): Promise<unknown> {
  const answer = await fetch(url)
  const text = await answer.text()
  return answer.ok ? answer.status : (JSON.parse(text) as { error: { code: string } }).error.code
}
