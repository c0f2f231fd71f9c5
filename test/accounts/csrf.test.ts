import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { attempt, person, signIn, withPassword } from '../support/people.ts'

const friend = 'https://app.example.com'

/** What a browser says of where a call comes from, and whether such a page may change something. */
function origins(own: string): [headers: Record<string, string>, allowed: boolean][] {
  const { host, port } = new URL(own)
  return [
    [{ Origin: own }, true],
    [{ Origin: own, 'Sec-Fetch-Site': 'same-origin' }, true],
    [{ 'Sec-Fetch-Site': 'same-origin' }, true],
    [{ Origin: friend, 'Sec-Fetch-Site': 'cross-site' }, true],
    [{}, false],
    [{ Origin: '' }, false],
    [{ Origin: 'null' }, false],
    [{ Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }, false],
    [{ 'Sec-Fetch-Site': 'none' }, false],
    [{ 'Sec-Fetch-Site': 'same-site' }, false],
    [{ 'Sec-Fetch-Site': 'cross-site' }, false],
    [{ Origin: 'https://evil.test', 'Sec-Fetch-Site': 'cross-site' }, false],
    [{ Origin: `http://evil.${host}` }, false],
    [{ Origin: own.replace('http:', 'https:') }, false],
    [{ Origin: own.replace(port, '1') }, false],
    [{ Origin: `${own}.evil.test` }, false],
    [{ Origin: `${own}/` }, false],
    [{ Origin: `${own}, https://evil.test` }, false],
    [{ Origin: `${friend}.evil.test` }, false],
    [{ Origin: `${friend}:444` }, false],
    [{ Origin: 'https://evil-app.example.com' }, false],
    [{ Referer: `${own}/` }, false],
  ]
}

test('what changes something by cookie comes from a page of ours, or of a listed origin; reading may come from anywhere', async () => {
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: friend })
  await withPassword(box)
  const { cookie } = await signIn(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const call = (method: string, path: string, headers: Record<string, string>, body?: unknown, key: string | null = null) =>
    box.call(method, path, body, { key, headers: { Cookie: cookie, ...headers } })
  const pairs = origins(box.url)
  for (const [headers, allowed] of pairs) {
    const made = await call('POST', '/v1/identities', headers, {})
    expect([headers, made.status]).toEqual([headers, allowed ? 201 : 403])
    if (!allowed) expect(made.body.error).toMatchObject({ type: 'forbidden', code: 'csrf', param: 'Origin' })
    const changed = await call('PATCH', `/v1/identities/${ada['id']}`, headers, { metadata: { x: '1' } })
    expect([headers, changed.status]).toEqual([headers, allowed ? 200 : 403])
    const gone = await call('DELETE', '/v1/account/sessions', headers)
    expect([headers, gone.status]).toEqual([headers, allowed ? 200 : 403])
    // also what there is not
    expect((await call('POST', '/v1/nothing', headers)).status).toBe(allowed ? 404 : 403)
    expect((await call('GET', '/v1/session', headers)).status).toBe(200)
    expect((await call('HEAD', '/v1/session', headers)).status).toBe(200)
    // whoever holds a key is asked for no page
    expect((await call('PATCH', `/v1/identities/${ada['id']}`, headers, {}, box.key)).status).toBe(200)
  }
  const { body } = await box.call('GET', '/v1/identities')
  expect(body.data).toHaveLength(1 + pairs.filter(([, allowed]) => allowed).length)
})

test('what a GET does is not done for a page elsewhere, nor by a link on it', async () => {
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: friend })
  await withPassword(box)
  const { cookie } = await signIn(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: entry } = await box.call('POST', `/v1/identities/${ada['id']}/totp`, {
    secret: 'JBSWY3DPEHPK3PXP',
    service_name: 'shop',
  })
  const ask = (path: string, headers: Record<string, string>) =>
    box.call('GET', `/v1/identities/${ada['id']}/${path}`, undefined, { key: null, headers: { Cookie: cookie, ...headers } })
  const readings = async (): Promise<number> => (await ask('events?type=totp.read', {})).body.data.length
  const elsewhere: Record<string, string>[] = [
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    { Origin: 'https://evil.test' },
    { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' },
  ]
  for (const headers of elsewhere) {
    for (const path of [`totp/${entry['id']}/code`, 'wait?timeout=0']) {
      const told = await ask(path, headers)
      expect([headers, path, told.status, told.body.error?.['code']]).toEqual([headers, path, 403, 'csrf'])
    }
  }
  expect(await readings()).toBe(0)
  // a program, somebody who types the address, our own page, and one that is listed
  const welcome: Record<string, string>[] = [
    {},
    { 'Sec-Fetch-Site': 'none' },
    { 'Sec-Fetch-Site': 'same-origin' },
    { Origin: friend, 'Sec-Fetch-Site': 'cross-site' },
  ]
  for (const headers of welcome)
    expect([headers, (await ask(`totp/${entry['id']}/code`, headers)).status]).toEqual([headers, 200])
  expect(await readings()).toBe(4)
})

test('a page elsewhere cannot sign its visitors in as somebody', async () => {
  const box = await appliance({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0', PILLARBOX_HTTP__CORS_ORIGINS: friend })
  await withPassword(box)
  for (const [headers, allowed] of origins(box.url)) {
    const answer = await box.call('POST', '/v1/session', person, { key: null, headers })
    expect([headers, answer.status]).toEqual([headers, allowed ? 200 : 403])
    if (!allowed) expect([answer.body.error['code'], answer.headers.getSetCookie()]).toEqual(['csrf', []])
  }
})

test('a page elsewhere cannot use up the attempts of its visitors', async () => {
  const box = await appliance()
  await withPassword(box)
  for (let n = 0; n < 10; n += 1) {
    const headers = { Origin: 'https://evil.test', 'Sec-Fetch-Site': 'cross-site' }
    const told = await box.call('POST', '/v1/session', person, { key: null, headers })
    expect([told.status, told.body.error['code']]).toEqual([403, 'csrf'])
  }
  expect((await attempt(box, person)).status).toBe(200)
})

test('what a form can send is not JSON, and is refused from our own pages too', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    const told = await page.call('POST', '/v1/identities', '{"name":"Ada"}', { headers: { 'Content-Type': type } })
    expect(told.body.error).toMatchObject({ status: 400, code: 'unsupported_media_type' })
    const signedIn = await box.call('POST', '/v1/session', JSON.stringify(person), {
      key: null,
      headers: { Origin: box.url, 'Content-Type': type },
    })
    expect(signedIn.body.error).toMatchObject({ status: 400, code: 'unsupported_media_type' })
  }
  expect((await box.call('GET', '/v1/identities')).body.data).toEqual([])
})

test('a refused page is not counted as the session’s calls, and a bad key is not helped by a cookie', async () => {
  const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '5', PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '0' })
  await withPassword(box)
  const page = await signIn(box)
  for (let n = 0; n < 10; n += 1) {
    const told = await page.call('POST', '/v1/identities', {}, { headers: { Origin: 'https://evil.test' } })
    expect(told.status).toBe(403)
  }
  const calls = []
  for (let n = 0; n < 6; n += 1) calls.push(await page.call('GET', '/v1/session'))
  expect(calls.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429])
  expect(calls[0]!.headers.get('ratelimit-policy')).toBe('"session";q=5;w=60')
  const told = await box.call('GET', '/v1/session', undefined, { key: 'garbage', headers: { Cookie: page.cookie } })
  expect([told.status, told.body.error['code']]).toEqual([401, 'invalid_key'])
  // and a session that is none reads as no key at all
  expect((await attempt(box, { email: 'x', password: 'y' })).status).toBe(401)
})

test('a listed origin may read answers with the cookie; any other may not', async () => {
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: friend })
  await withPassword(box)
  const page = await signIn(box)
  const allowed = await page.call('GET', '/v1/session', undefined, { headers: { Origin: friend } })
  expect(allowed.headers.get('access-control-allow-origin')).toBe(friend)
  expect(allowed.headers.get('access-control-allow-credentials')).toBe('true')
  for (const origin of ['https://evil.test', 'null', `${friend}.evil.test`]) {
    const other = await page.call('GET', '/v1/session', undefined, { headers: { Origin: origin } })
    expect(other.headers.get('access-control-allow-origin')).toBeNull()
  }
})
