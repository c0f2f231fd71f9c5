import { expect, test } from 'vitest'
import { requirePassword } from '../../src/accounts/sign-in/password-rules.ts'
import { appliance } from '../support/appliance.ts'
import { attempt, person, signIn, withPassword } from '../support/people.ts'

const next = 'a longer and quieter evening'

test('no key sets the first password, and none changes it without the one there is', async () => {
  const box = await appliance()
  expect((await box.call('GET', '/v1/account')).body).toMatchObject({ name: 'default', email: null, password_set: false })
  const key = async (input: Record<string, unknown>): Promise<string> =>
    (await box.call('POST', '/v1/api-keys', input)).body['key'] as string
  const narrow = await key({ scopes: ['account:write', 'account:read'] })
  for (const one of [box.key, narrow]) {
    const told = await box.call('POST', '/v1/account/password', person, { key: one })
    expect([told.status, told.body.error['code']]).toEqual([403, 'setup_link_required'])
  }
  const brief = await key({ expires_at: new Date(Date.now() + 3_600_000).toISOString() })
  expect((await box.call('POST', '/v1/account/password', person, { key: brief })).body.error['code']).toBe('beyond_own')
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const bound = await key({ identity_id: ada['id'] })
  expect((await box.call('POST', '/v1/account/password', person, { key: bound })).status).toBe(404)
  for (const path of ['/v1/account', '/v1/account/sessions'])
    expect((await box.call('GET', path, undefined, { key: bound })).status).toBe(404)
  expect((await box.call('GET', '/v1/account')).body).toMatchObject({ email: null, password_set: false })
  expect((await attempt(box, person)).status).toBe(401)

  await withPassword(box)
  expect((await box.call('GET', '/v1/account')).body).toMatchObject({ email: 'Ada@Example.com', password_set: true })
  // who knows the password needs no wide key, and no wide key does without
  const changed = { current_password: person.password, password: next }
  expect((await box.call('POST', '/v1/account/password', changed, { key: narrow })).status).toBe(200)
  const without = await box.call('POST', '/v1/account/password', person)
  expect([without.status, without.body.error['param']]).toEqual([400, 'current_password'])
})

test('a change needs the current password, ends the other sessions, and the old one is no good', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  const other = await signIn(box)
  const wrong = await page.call('POST', '/v1/account/password', { current_password: 'wrong', password: next })
  expect([wrong.status, wrong.body.error]).toMatchObject([403, { code: 'wrong_password', param: 'current_password' }])
  const input = { current_password: person.password, password: next, email: 'grace@example.com' }
  const done = await page.call('POST', '/v1/account/password', input)
  expect([done.status, done.body]).toMatchObject([200, { email: 'grace@example.com' }])
  expect((await page.call('GET', '/v1/session')).status).toBe(200)
  expect((await other.call('GET', '/v1/session')).status).toBe(401)
  expect((await attempt(box, person)).status).toBe(401)
  expect((await attempt(box, { email: 'grace@example.com', password: next })).status).toBe(200)
})

test('whoever holds a session or key cannot find the password by trying', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  const answers = []
  for (let n = 0; n < 7; n += 1) {
    answers.push(await page.call('POST', '/v1/account/password', { current_password: `wrong ${n}`, password: next }))
  }
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403, 429, 429])
  expect((await page.call('DELETE', '/v1/account/totp', { password: person.password })).status).toBe(404)
  const right = { current_password: person.password, password: next }
  expect((await box.call('POST', '/v1/account/password', right)).body.error['code']).toBe('too_many_attempts')
})

test('wrong passwords count together, whichever call they are tried with', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  const answers = []
  for (let n = 0; n < 7; n += 1) {
    const input = n % 2 === 0 ? { current_password: `wrong ${n}`, password: next } : { password: `wrong ${n}` }
    answers.push((await page.call('POST', n % 2 === 0 ? '/v1/account/password' : '/v1/account/totp', input)).status)
  }
  expect(answers).toEqual([403, 403, 403, 403, 403, 429, 429])
})

test('a key that expires changes no password, as that lasts longer; not even with the one there is', async () => {
  const box = await appliance()
  await withPassword(box)
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  const { body: brief } = await box.call('POST', '/v1/api-keys', { scopes: ['account:write'], expires_at })
  const input = { current_password: person.password, password: next }
  const told = await box.call('POST', '/v1/account/password', input, { key: brief['key'] as string })
  expect([told.status, told.body.error['code']]).toEqual([403, 'beyond_own'])
  await signIn(box)
})

test('two changes at once: one of them wins', async () => {
  const box = await appliance()
  await withPassword(box)
  const change = (password: string) => box.call('POST', '/v1/account/password', { current_password: person.password, password })
  const answers = await Promise.all([change(`${next} one`), change(`${next} two`)])
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 409])
})

test('an address is one account’s, however it is spelt', async () => {
  const box = await appliance()
  await withPassword(box)
  const input = { name: 'Second', email: 'aDA@example.com', password: next }
  await expect(box.app.accounts.add(input)).rejects.toMatchObject({ code: 'email_taken' })
  expect(await box.app.accounts.list()).toHaveLength(1)
  await box.app.accounts.add({ ...input, email: 'second@example.com' })
  await expect(box.app.accounts.add({ ...input, name: 'SECOND', email: 'third@example.com' })).rejects.toMatchObject({
    param: 'name',
  })
  const page = await signIn(box, { email: 'second@example.com', password: next })
  const told = await page.call('POST', '/v1/account/password', {
    email: 'ada@EXAMPLE.com',
    current_password: next,
    password: next,
  })
  expect([told.status, told.body.error]).toMatchObject([409, { code: 'email_taken', param: 'email' }])
  expect((await page.call('GET', '/v1/account')).body).toMatchObject({ name: 'Second', email: 'second@example.com' })
})

test('length counts, and what everybody tries first is refused; nothing else is asked of a password', () => {
  const good = [
    'abcdefgz',
    'correct horse',
    '        x',
    'пароль от дома',
    '密码很长很长很长',
    '😀😁😂😃😄😅😆😇',
    'a'.repeat(255).concat('b'),
  ]
  for (const password of good) expect(() => requirePassword(password, 'ada@example.com')).not.toThrow()
  const bad = [
    ['short12', /8 to 256 characters; it has 7/],
    ['x'.repeat(257), /it has 257/],
    ['e\u0301'.repeat(7), /it has 7/],
    ['Password1', /most common passwords/],
    ['QWERTYUIOP', /most common passwords/],
    ['zzzzzzzzzzz', /most common passwords/],
    ['ADA.lovelace@example.com', /must not be the e-mail address/],
    ['ada.Lovelace', /must not be the e-mail address/],
  ] as const
  for (const [password, why] of bad) expect(() => requirePassword(password, 'ada.lovelace@example.com')).toThrow(why)
})
