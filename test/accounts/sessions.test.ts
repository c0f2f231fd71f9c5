import { openStore } from '../support/open-store.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cookieName } from '../../src/http/cookie.ts'
import { appliance } from '../support/appliance.ts'
import { fetchAs } from '../support/host.ts'
import { HeldClock } from '../support/held-clock.ts'
import { attempt, browser, cookieOf, person, signIn, withPassword } from '../support/people.ts'

test('a person signs in, is known by the cookie, and signs out', async () => {
  const box = await appliance()
  await withPassword(box)
  const answer = await attempt(box, { ...person, email: 'ada@example.COM' })
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    id: expect.stringMatching(/^sess_/),
    account: { id: expect.stringMatching(/^acct_/), name: 'default', email: 'Ada@Example.com' },
    person: { id: expect.stringMatching(/^person_/), role: 'owner' },
    totp_enabled: false,
    created_at: expect.any(String),
    expires_at: expect.any(String),
  })
  expect(Date.parse(answer.body['expires_at']) - Date.parse(answer.body['created_at'])).toBe(30 * 86_400_000)
  const [set] = answer.headers.getSetCookie()
  expect(set).toMatch(/^pillarbox=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/)

  const page = browser(box, cookieOf(answer))
  expect((await page.call('GET', '/v1/session')).body).toEqual(answer.body)
  const made = await page.call('POST', '/v1/identities', { name: 'Grace' })
  expect([made.status, made.headers.get('ratelimit-policy')]).toEqual([201, null])
  expect((await page.call('GET', '/v1/identities')).body.data).toHaveLength(1)

  const out = await page.call('DELETE', '/v1/session')
  expect(out.body).toEqual({ id: answer.body['id'], deleted: true })
  expect(out.headers.getSetCookie()).toEqual(['pillarbox=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict'])
  const after = await page.call('GET', '/v1/session')
  expect([after.status, after.body.error['code']]).toEqual([401, 'missing_key'])
  expect((await box.call('GET', '/v1/session')).body.error).toMatchObject({ type: 'forbidden', code: 'session_required' })
})

test('over https the cookie is bound to this host and to TLS; the settings decide how far it goes', async () => {
  const box = await appliance({ PILLARBOX_PUBLIC_URL: 'https://box.test', PILLARBOX_HTTP__SESSION_SAME_SITE: 'lax' })
  const call = (method: string, path: string, body?: unknown, headers = {}) =>
    box.call(method, `http://127.0.0.1:${box.app.httpAddresses.plain!.port}${path}`, body, {
      key: null,
      headers: { Origin: 'https://box.test', ...headers },
    })
  await withPassword(box)
  const answer = await call('POST', '/v1/session', person)
  const [set] = answer.headers.getSetCookie()
  expect(set).toMatch(/^__Host-pillarbox=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure$/)
  const Cookie = cookieOf(answer)
  expect((await call('GET', '/v1/session', undefined, { Cookie })).status).toBe(200)
  // one that a neighbouring host could have planted
  expect((await call('GET', '/v1/session', undefined, { Cookie: Cookie.replace('__Host-', '') })).status).toBe(401)
  expect((await call('GET', '/v1/session', undefined, { Cookie: `${Cookie}; __Host-pillarbox=planted` })).status).toBe(401)
})

test('only on the machine itself does the cookie do without TLS', async () => {
  expect(await signedIn('http://localhost:8080')).toMatch(/^pillarbox=.*; SameSite=Strict$/)
  expect(await signedIn('http://192.0.2.7:8080')).toMatch(/^__Host-pillarbox=.*; SameSite=Strict; Secure$/)
  for (const near of ['http://box.localhost', 'http://127.0.0.2:8080', 'http://[::1]:8080']) {
    expect([near, cookieName(near)]).toEqual([near, 'pillarbox'])
  }
  for (const far of ['http://localhost.test', 'http://127.0.0.1.test', 'http://[2001:db8::1]', 'https://localhost']) {
    expect([far, cookieName(far)]).toEqual([far, '__Host-pillarbox'])
  }
})

test('a name that only looks like the cookie’s is not taken for it, whatever white space a neighbouring host puts before it', async () => {
  const box = await appliance({ PILLARBOX_PUBLIC_URL: 'https://box.test' })
  const url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  await withPassword(box)
  const call = (method: string, path: string, headers: Record<string, string>, body?: unknown) =>
    box.call(method, `${url}${path}`, body, { key: null, headers: { Origin: 'https://box.test', ...headers } })
  const Cookie = cookieOf(await call('POST', '/v1/session', {}, person))
  const ask = async (cookie: string): Promise<number> =>
    (await fetchAs(`${url}/v1/session`, { headers: { Cookie: cookie } })).status
  expect(await ask(Cookie)).toBe(200)
  // browsers hold only names that begin with __Host- to their promise, and these begin with an octet that is none of HTTP's white space
  for (const octet of ['\u00a0', '\u0085', '\u00ad', '%20', '$']) {
    expect([octet, await ask(`${octet}${Cookie}`)]).toEqual([octet, 401])
    // nor does one that was planted put out the one that is right
    expect([octet, await ask(`${octet}__Host-pillarbox=planted; ${Cookie}`)]).toEqual([octet, 200])
  }
  for (const other of [Cookie.toLowerCase(), Cookie.replace('=', ' ='), `x=${Cookie}`, `"${Cookie}"`]) {
    expect([other, await ask(other)]).toEqual([other, 401])
  }
  expect(await ask(`a=b;\t ${Cookie}  ;c=d`)).toBe(200)
})

test('with an Authorization header, even an empty one, the cookie counts for nothing', async () => {
  const box = await appliance()
  await withPassword(box)
  const { cookie } = await signIn(box)
  for (const Authorization of ['', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer garbage']) {
    const { status } = await fetchAs(`${box.url}/v1/session`, { headers: { Cookie: cookie, Authorization } })
    expect([Authorization, status]).toEqual([Authorization, 401])
  }
})

test('each sign-in is a session of its own; sign-out everywhere leaves the one that asks', async () => {
  const box = await appliance({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' })
  await withPassword(box)
  const [here, there, elsewhere] = [await signIn(box), await signIn(box), await signIn(box, person, { 'User-Agent': 'curl/8' })]
  expect(new Set([here.cookie, there.cookie, elsewhere.cookie]).size).toBe(3)
  const { body } = await here.call('GET', '/v1/account/sessions')
  expect(body.data.map(({ current }) => current)).toEqual([false, false, true])
  expect(body.data[0]).toMatchObject({ user_agent: 'curl/8', ip: '127.0.0.1' })
  expect(JSON.stringify(body)).not.toContain(here.cookie.split('=')[1])

  const ended = await here.call('DELETE', '/v1/account/sessions')
  expect(ended.body).toMatchObject({ deleted: true, count: 2 })
  expect((await here.call('GET', '/v1/session')).status).toBe(200)
  expect((await there.call('GET', '/v1/session')).status).toBe(401)
  expect((await elsewhere.call('GET', '/v1/session')).status).toBe(401)
  // a key has none of its own to keep
  expect((await box.call('DELETE', '/v1/account/sessions')).body).toMatchObject({ count: 1 })
  expect((await here.call('GET', '/v1/session')).status).toBe(401)
})

test('a session ends when it is not used for long, and after its time in any case; use is remembered over a restart', async () => {
  const clock = new HeldClock()
  const env = { PILLARBOX_HTTP__SESSION_IDLE: '2 h', PILLARBOX_HTTP__SESSION_LIFETIME: '5 h' }
  const box = await appliance({ ...env, PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' }, clock)
  await withPassword(box)
  const used = await signIn(box)
  const unused = await signIn(box)
  const hours = (count: number): void => clock.advance(count * 3_600_000)
  hours(1.5)
  expect((await used.call('GET', '/v1/session')).status).toBe(200)
  await box.restart()
  hours(1)
  const status = async (cookie: string): Promise<number> => (await browser(box, cookie).call('GET', '/v1/session')).status
  expect([await status(used.cookie), await status(unused.cookie)]).toEqual([200, 401])
  hours(1.5)
  expect(await status(used.cookie)).toBe(200)
  hours(1)
  expect(await status(used.cookie)).toBe(401)
})

test('who comes a hundred times more pushes out the oldest session', async () => {
  const box = await appliance()
  await withPassword(box)
  const first = await signIn(box)
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const row = database.prepare('SELECT account_id, person_id, created_at FROM sessions').get() as Record<string, string>
  const insert = database.prepare(
    `INSERT INTO sessions (id, account_id, person_id, hash, ip, user_agent, created_at, last_used_at) VALUES (?, ?, ?, ?, '', '', ?, ?)`,
  )
  for (let n = 0; n < 99; n += 1)
    insert.run(`sess_${n}`, row['account_id']!, row['person_id']!, `hash ${n}`, row['created_at']!, row['created_at']!)
  const last = await signIn(box)
  expect((await first.call('GET', '/v1/session')).status).toBe(401)
  expect((await last.call('GET', '/v1/session')).status).toBe(200)
  expect(database.prepare('SELECT count(*) AS count FROM sessions').get()).toEqual({ count: 100 })
  database.close()
})

test('neither the cookie nor the password is on disk or in the log', async () => {
  const box = await appliance({}, undefined, { passwordCost: undefined })
  await withPassword(box)
  const page = await signIn(box)
  await attempt(box, { email: 'hunter2-typed-as-address', password: 'wrong-and-secret' })
  await page.call('GET', '/v1/session')
  await box.app.stop()
  const secrets = [page.cookie.split('=')[1]!, person.password, 'hunter2-typed-as-address', 'wrong-and-secret']
  const files = readdirSync(box.directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const texts = files.map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
  expect(texts.some((text) => text.includes('$argon2id$v=19$m=19456,t=2,p=1$'))).toBe(true)
  for (const secret of secrets) {
    expect(texts.filter((text) => text.includes(secret))).toEqual([])
    expect(box.logged.filter((line) => line.includes(secret))).toEqual([])
  }
  const said = box.logged.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(said.find(({ msg }) => msg === 'signed in')).toMatchObject({ part: 'account', address: '127.0.0.1' })
  expect(said.find(({ msg }) => msg === 'sign-in refused')).toMatchObject({ why: 'invalid_credentials' })
})

/** The cookie of who signs in at a box of this origin, and is known by it there. */
async function signedIn(origin: string): Promise<string> {
  const box = await appliance({ PILLARBOX_PUBLIC_URL: origin })
  const url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  await withPassword(box)
  const answer = await box.call('POST', `${url}/v1/session`, person, { key: null, headers: { Origin: origin } })
  const call = { key: null, headers: { Cookie: cookieOf(answer) } }
  expect((await box.call('GET', `${url}/v1/session`, undefined, call)).status).toBe(200)
  return answer.headers.getSetCookie()[0]!
}
