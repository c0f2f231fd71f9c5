import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { generateSync } from 'otplib'
import { PasswordHashes } from '../../src/accounts/sign-in/password-hash.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { attempt, person, signIn, withPassword } from '../support/people.ts'

const env = { PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0', PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.0/8' }

test('a second factor counts once confirmed; each code then lets in once, a step early or late', async () => {
  const { box, clock } = await atNoon()
  const page = await signIn(box)
  const other = await signIn(box)
  const { status, body: setup } = await page.call('POST', '/v1/account/totp', { password: person.password })
  expect(status).toBe(200)
  expect(setup['uri']).toBe(
    `otpauth://totp/Pillarbox:Ada%40Example.com?secret=${setup['secret']}&issuer=Pillarbox&algorithm=SHA1&digits=6&period=30`,
  )
  expect(setup['secret']).toMatch(/^[A-Z2-7]{32}$/)
  expect(new Set(setup['recovery_codes']).size).toBe(10)
  expect(setup['recovery_codes'][0]).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/)
  // not yet confirmed, nobody is asked for it
  await signIn(box)
  expect((await page.call('GET', '/v1/account')).body).toMatchObject({ totp_enabled: false, recovery_codes_left: 0 })

  const wrong = await page.call('POST', '/v1/account/totp/confirm', { code: '000000' })
  expect([wrong.status, wrong.body.error['code']]).toEqual([403, 'wrong_code'])
  const code = (steps = 0): string => codeOf(setup['secret'], clock.now() + steps * 30_000)
  const confirmed = await page.call('POST', '/v1/account/totp/confirm', { code: code() })
  expect(confirmed.body).toMatchObject({ totp_enabled: true, recovery_codes_left: 10 })
  // whoever else was signed in is not any more
  expect((await other.call('GET', '/v1/session')).status).toBe(401)
  expect((await page.call('GET', '/v1/session')).body).toMatchObject({ totp_enabled: true })

  expect((await attempt(box, person)).body.error).toMatchObject({ type: 'unauthorized', code: 'totp_required' })
  const again = await attempt(box, { ...person, totp: code() })
  expect([again.status, again.body.error['code']]).toEqual([401, 'invalid_totp'])
  clock.advance(30_000)
  await signIn(box, { ...person, totp: code() })
  expect((await attempt(box, { ...person, totp: code() })).status).toBe(401)
  // one from before the last that was taken
  expect((await attempt(box, { ...person, totp: code(-1) })).status).toBe(401)
  await signIn(box, { ...person, totp: code(1).replace(/^.../, '$& ') })
  clock.advance(90_000)
  expect((await attempt(box, { ...person, totp: code(-2) })).status).toBe(401)
  expect((await attempt(box, { ...person, totp: code(2) })).status).toBe(401)
  await signIn(box, { ...person, totp: code(-1) })
})

test('two at once with one code: one of them gets in', async () => {
  const { box, clock } = await atNoon()
  const secret = await enabled(box, clock)
  clock.advance(30_000)
  const totp = codeOf(secret.secret, clock.now())
  const answers = await Promise.all([1, 2, 3].map(() => attempt(box, { ...person, totp })))
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 401, 401])
})

test('three at once with one recovery code: one of them gets in', async () => {
  const { box, clock } = await atNoon()
  const { recovery_codes: codes } = await enabled(box, clock)
  const answers = await Promise.all([1, 2, 3].map(() => attempt(box, { ...person, recovery_code: codes[0] })))
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 401, 401])
  expect((await box.call('GET', '/v1/account')).body).toMatchObject({ recovery_codes_left: 9 })
})

test('a recovery code stands in once, in either field, however it is written', async () => {
  const { box, clock } = await atNoon()
  const { recovery_codes: codes } = await enabled(box, clock)
  const page = await signIn(box, { ...person, recovery_code: codes[0] })
  expect((await attempt(box, { ...person, recovery_code: codes[0] })).body.error['code']).toBe('invalid_totp')
  await signIn(box, { ...person, totp: ` ${codes[1]!.toUpperCase().replaceAll('-', '')}` })
  expect((await page.call('GET', '/v1/account')).body).toMatchObject({ recovery_codes_left: 8 })
  expect((await attempt(box, { ...person, recovery_code: 'aaaa-aaaa-aaaa-aaaa' })).status).toBe(401)
  expect((await attempt(box, { ...person, password: 'wrong', recovery_code: codes[2] })).body.error['code']).toBe(
    'invalid_credentials',
  )
  await signIn(box, { ...person, recovery_code: codes[2] })
})

test('what is missing is no wrong guess: asking for the code costs nothing', async () => {
  const { box, clock } = await atNoon()
  const { secret } = await enabled(box, clock)
  for (let n = 0; n < 8; n += 1) expect((await attempt(box, person)).body.error['code']).toBe('totp_required')
  clock.advance(30_000)
  await signIn(box, { ...person, totp: codeOf(secret, clock.now()) })
})

test('codes are not guessed from many places by who has the password; a recovery code lets the owner in', async () => {
  const { box, clock } = await atNoon()
  const { secret, recovery_codes: codes } = await enabled(box, clock)
  clock.advance(30_000)
  const right = codeOf(secret, clock.now())
  const wrong = right === '123456' ? '654321' : '123456'
  const answers = []
  for (let n = 0; n < 31; n += 1) answers.push(await attempt(box, { ...person, totp: wrong }, from(n)))
  expect(answers.slice(0, 30).every(({ status }) => status === 401)).toBe(true)
  expect(answers[30]!.body.error).toMatchObject({ type: 'rate_limited', code: 'too_many_attempts' })
  expect((await attempt(box, { ...person, totp: right }, from(99))).status).toBe(429)
  await signIn(box, { ...person, recovery_code: codes[0] }, from(100))
  clock.advance(3_600_000)
  await signIn(box, { ...person, totp: codeOf(secret, clock.now()) }, from(99))
})

test('it is removed with the password, a code or a recovery code, and not without; the other sessions end', async () => {
  const { box, clock } = await atNoon()
  for (const proof of ['password', 'code', 'recovery'] as const) {
    const { secret, recovery_codes: codes } = await enabled(box, clock)
    clock.advance(30_000)
    const page = await signIn(box, { ...person, totp: codeOf(secret, clock.now()) })
    const other = await signIn(box, { ...person, recovery_code: codes[9] })
    const bare = await page.call('DELETE', '/v1/account/totp')
    expect([bare.status, bare.body.error['param']]).toEqual([400, 'password'])
    const wrong = await page.call('DELETE', '/v1/account/totp', { password: 'wrong' })
    expect([wrong.status, wrong.body.error['code']]).toEqual([403, 'wrong_password'])
    expect((await page.call('DELETE', '/v1/account/totp', { code: '000000' })).body.error['code']).toBe('wrong_code')
    expect((await page.call('POST', '/v1/account/totp', { password: person.password })).body.error['code']).toBe('totp_enabled')
    clock.advance(30_000)
    const given = {
      password: { password: person.password },
      code: { code: codeOf(secret, clock.now()) },
      recovery: { code: codes[0] },
    }
    const gone = await page.call('DELETE', '/v1/account/totp', given[proof])
    expect(gone.body).toMatchObject({ id: expect.stringMatching(/^acct_/), deleted: true })
    expect((await other.call('GET', '/v1/session')).status).toBe(401)
    expect((await page.call('GET', '/v1/account')).body).toMatchObject({ totp_enabled: false, recovery_codes_left: 0 })
    expect((await page.call('DELETE', '/v1/account/totp', given.password)).status).toBe(404)
    await signIn(box)
  }
})

test('no key changes the second factor: not with every scope, not with the password, not one that expires', async () => {
  const { box, clock } = await atNoon()
  const { recovery_codes: codes } = await enabled(box, clock)
  const expires_at = new Date(clock.now() + 60_000).toISOString()
  const { body: brief } = await box.call('POST', '/v1/api-keys', { scopes: ['account:write'], expires_at })
  for (const key of [brief['key'] as string, box.key]) {
    for (const [method, path, body] of [
      ['DELETE', '', { password: person.password }],
      ['DELETE', '', { code: codes[0] }],
      ['POST', '', { password: person.password }],
      ['POST', '/confirm', { code: '123456' }],
    ] as const) {
      const told = await box.call(method, `/v1/account/totp${path}`, body, { key })
      expect([method, path, told.status, told.body.error['code']]).toEqual([method, path, 403, 'session_required'])
    }
  }
  expect((await box.call('GET', '/v1/account')).body).toMatchObject({ totp_enabled: true, recovery_codes_left: 10 })
  expect((await attempt(box, person)).body.error['code']).toBe('totp_required')
})

test('a session without the password adds no second factor, and does not find the password by asking for one', async () => {
  const { box } = await atNoon()
  const page = await signIn(box)
  const bare = await page.call('POST', '/v1/account/totp')
  expect([bare.status, bare.body.error]).toMatchObject([400, { code: 'missing', param: 'password' }])
  const answers = []
  for (let n = 0; n < 6; n += 1)
    answers.push((await page.call('POST', '/v1/account/totp', { password: `wrong ${n}` })).body.error['code'])
  expect(answers).toEqual([...Array.from({ length: 5 }, () => 'wrong_password'), 'too_many_attempts'])
  expect((await page.call('POST', '/v1/account/totp/confirm', { code: '123456' })).body.error['code']).toBe('nothing_to_confirm')
  await signIn(box)
})

test('a password that was changed while it was looked at removes nothing', async () => {
  const { box, clock } = await atNoon()
  const { secret } = await enabled(box, clock)
  clock.advance(30_000)
  const page = await signIn(box, { ...person, totp: codeOf(secret, clock.now()) })
  const other = await new PasswordHashes().hash('quite another evening')
  const looked = vi.spyOn(PasswordHashes.prototype, 'fits')
  const removal = page.call('DELETE', '/v1/account/totp', { password: person.password })
  await vi.waitFor(() => expect(looked).toHaveBeenCalled(), { interval: 1, timeout: 100_000 })
  // changed on disk, as by a call that ends at this moment; whoever reads outside a transaction sees it after the next commit
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database.prepare('UPDATE logins SET password = ?').run(other)
  database.close()
  const told = await removal
  expect([told.status, told.body.error['code']]).toEqual([409, 'password_changed'])
  expect((await box.call('GET', '/v1/account')).body).toMatchObject({ totp_enabled: true, recovery_codes_left: 10 })
})

test('there is nothing to confirm before it was begun, and only what was begun last', async () => {
  const { box, clock } = await atNoon()
  const page = await signIn(box)
  const told = await page.call('POST', '/v1/account/totp/confirm', { code: '123456' })
  expect(told.body.error).toMatchObject({ type: 'conflict', code: 'nothing_to_confirm' })
  const begin = async () => (await page.call('POST', '/v1/account/totp', { password: person.password })).body
  const begun = await begin()
  const anew = await begin()
  const confirm = async (secret: string) =>
    (await page.call('POST', '/v1/account/totp/confirm', { code: codeOf(secret, clock.now()) })).status
  expect(await confirm(begun['secret'])).toBe(403)
  expect(await confirm(anew['secret'])).toBe(200)
})

async function atNoon(): Promise<{ box: Appliance; clock: HeldClock }> {
  const clock = new HeldClock()
  const box = await appliance(env, clock)
  await withPassword(box)
  return { box, clock }
}

async function enabled(box: Appliance, clock: HeldClock): Promise<{ secret: string; recovery_codes: string[] }> {
  const page = await signIn(box)
  const input = { password: person.password }
  const { body } = await page.call<{ secret: string; recovery_codes: string[] }>('POST', '/v1/account/totp', input)
  const { status } = await page.call('POST', '/v1/account/totp/confirm', { code: codeOf(body.secret, clock.now()) })
  expect(status).toBe(200)
  return body
}

function codeOf(secret: string, now: number): string {
  return generateSync({ secret, epoch: Math.floor(now / 1000) })
}

function from(n: number) {
  return { 'X-Forwarded-For': `192.0.2.${n}` }
}
