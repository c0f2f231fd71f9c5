import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { generateSync } from 'otplib'
import { expect, onTestFinished, test, vi } from 'vitest'
import { PasswordHashes } from '../../src/accounts/sign-in/password-hash.ts'
import { Fault } from '../../src/core/fault.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { attempt, person, signIn, withPassword } from '../support/people.ts'
import { run } from '../support/program.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

function pillarbox(box: Appliance, parameters: string[], input = '') {
  return run(process.execPath, [main, 'account', ...parameters], { cwd: box.directory, env: box.env, input })
}

test('the operator adds an account, lists them, and helps who cannot get in', async () => {
  const box = await appliance()
  await withPassword(box)
  const page = await signIn(box)
  const { body: setup } = await page.call('POST', '/v1/account/totp', { password: person.password })
  await page.call('POST', '/v1/account/totp/confirm', { code: generateSync({ secret: setup['secret'] as string }) })
  expect((await attempt(box, person)).body.error['code']).toBe('totp_required')
  const heading = /^ID +NAME +SIGNS IN WITH\n/
  expect((await pillarbox(box, ['list'])).output.toString()).toMatch(heading)
  const grace = ['add', '--name', 'Grace', '--email', 'grace@example.com']
  const added = await pillarbox(box, grace, 'a password of her own\n')
  expect([added.code, added.output.toString()]).toEqual([
    0,
    expect.stringMatching(/^Grace was added: acct_\w{26}\. It signs in with grace@example\.com\.\n$/),
  ])
  const refusals: [parameters: string[], input: string, why: RegExp][] = [
    [grace, 'a password of her own\n', /signs in with that e-mail address/],
    [['add', '--name', 'Other', '--email', 'other@example.com'], 'password1\n', /most common passwords/],
    [['add', '--name', 'Other', '--email', 'other@example.com'], '', /No password was entered/],
    [['password', 'nobody@example.com'], 'a password of her own\n', /no account nobody@example\.com\. List the accounts: /],
  ]
  for (const [parameters, input, why] of refusals) {
    const { code, errors } = await pillarbox(box, parameters, input)
    expect([code, errors]).toEqual([1, expect.stringMatching(why)])
    expect(errors).not.toMatch(/\n\s+at /)
  }
  // who is helped is signed out at once; the rest is done to a box that does not run
  await box.app.stop()
  const listed = (await pillarbox(box, ['list'])).output.toString().replace(heading, '').trim().split('\n')
  expect(listed.map((line) => line.replace(/^acct_\w+ +/, ''))).toEqual([
    'default  Ada@Example.com    second factor',
    'Grace    grace@example.com',
  ])
  const changed = await pillarbox(
    box,
    ['password', 'ADA@example.com', '--email', 'ada@example.net', '--remove-second-factor'],
    'quite another evening\n',
  )
  expect([changed.code, changed.output.toString()]).toEqual([0, expect.stringMatching(/password of default .* was changed/)])

  await box.restart()
  expect((await page.call('GET', '/v1/session')).status).toBe(401)
  expect((await attempt(box, person)).status).toBe(401)
  const ada = await signIn(box, { email: 'ada@example.net', password: 'quite another evening' })
  expect((await ada.call('GET', '/v1/account')).body).toMatchObject({ name: 'default', totp_enabled: false })
  const hers = await signIn(box, { email: 'grace@example.com', password: 'a password of her own' })
  await ada.call('POST', '/v1/identities', { name: 'Agent of Ada' })
  expect((await hers.call('GET', '/v1/identities')).body.data).toEqual([])
})

test('another’s password is set on the machine of the box only, whatever a key may do', async () => {
  const box = await appliance()
  const input = { email: 'grace@example.com', password: 'a password of her own' }
  const added = await box.call('POST', '/v1/accounts', { name: 'Grace', ...input })
  expect([added.status, added.body]).toMatchObject([201, { name: 'Grace', email: input.email, password_set: true }])
  expect(JSON.stringify(added.body)).not.toContain(input.password)
  const { body: listed } = await box.call('GET', '/v1/accounts?limit=1&offset=1')
  expect(listed).toMatchObject({ data: [{ id: added.body.id }], has_more: false })
  const told = await box.call('POST', `/v1/accounts/${added.body.id}/password`, { password: 'quite another evening' })
  expect([told.status, told.body.error.code]).toEqual([403, 'local_only'])
  const page = await signIn(box, input)
  const hers = await page.call('GET', '/v1/accounts')
  expect([hers.status, hers.body.error.code]).toEqual([403, 'operator_only'])
})

test('an account that could not be added is not there, and is added by a repetition', async () => {
  const box = await appliance()
  const grace = { email: 'grace@example.com', password: 'a password of her own' }
  const add = (name: string) => box.call('POST', '/v1/accounts', { name, ...grace })
  const names = async () => (await box.call('GET', '/v1/accounts')).body.data.map(({ name }) => name as string)
  // as when many sign in at once
  const busy = new Fault('rate_limited', 'Too many sign-ins are in progress.', { code: 'busy' })
  const hash = vi.spyOn(PasswordHashes.prototype, 'hash').mockRejectedValueOnce(busy)
  onTestFinished(() => hash.mockRestore())
  expect((await add('Grace')).body.error['code']).toBe('busy')
  expect(await names()).toEqual(['default'])
  const answers = await Promise.all([add('Grace'), add('Grace Hopper')])
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 409])
  const added = answers.find(({ status }) => status === 201)!.body
  expect(await names()).toEqual(['default', added['name']])
  await box.restart()
  expect(await names()).toEqual(['default', added['name']])
  expect((await signIn(box, grace)).cookie).not.toBe('')
})

test('an account is not added by a key that does not decide about holds: its owner would be one whom no policy holds', async () => {
  const box = await appliance()
  const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  const input = { name: 'Other', email: 'eve@example.com', password: 'a password of the agent' }
  const told = await box.call('POST', '/v1/accounts', input, { key: agent.key as string })
  expect([told.status, told.body.error?.code]).toEqual([403, 'insufficient_scope'])
  expect((await attempt(box, { email: input.email, password: input.password })).status).toBe(401)
})

test('an account that the operator takes off the list lets nobody in any more', async () => {
  const box = await appliance()
  const { id } = await box.app.accounts.add({ name: 'Grace', email: 'grace@example.com', password: 'a password of her own' })
  const input = { email: 'grace@example.com', password: 'a password of her own' }
  const page = await signIn(box, input)
  await box.app.stop()
  const file = `${box.env['PILLARBOX_DATA_DIR']}/state.json`
  const state = JSON.parse(readFileSync(file, 'utf8')) as { accounts: { id: string }[] }
  expect(state.accounts).toHaveLength(2)
  writeFileSync(file, JSON.stringify({ ...state, accounts: state.accounts.filter((account) => account.id !== id) }))
  await box.restart()
  expect((await page.call('GET', '/v1/session')).status).toBe(401)
  expect((await attempt(box, input)).body.error).toMatchObject({ code: 'invalid_credentials' })
})
