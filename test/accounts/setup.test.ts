import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { HeldClock } from '../support/held-clock.ts'
import { attempt, person } from '../support/people.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { run } from '../support/program.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

const day = 24 * 3_600_000

async function tokenOf(box: Appliance): Promise<string> {
  const link = await box.app.setupLink()
  return new URL(link!).hash.slice('#token='.length)
}

function finish(box: Appliance, input: Record<string, unknown>, headers: Record<string, string> = {}) {
  return box.call('POST', '/v1/setup', input, { key: null, headers: { Origin: box.url, ...headers } })
}

test('a link sets the first password once; what was wrong with the password leaves it good', async () => {
  const box = await appliance({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' })
  const token = await tokenOf(box)
  const easy = await finish(box, { ...person, token, password: 'password' })
  expect([easy.status, easy.body.error['param']]).toEqual([400, 'password'])
  const done = await finish(box, { ...person, token })
  expect([done.status, done.body]).toMatchObject([200, { email: person.email, password_set: true }])
  expect((await attempt(box, person)).status).toBe(200)
  const again = await finish(box, { ...person, token, password: 'another long evening' })
  expect([again.status, again.body.error['code']]).toEqual([403, 'setup_link_invalid'])
  // an account with a password gets no link, so that nobody sets another by one
  expect(await box.app.setupLink()).toBeNull()
  expect((await attempt(box, person)).status).toBe(200)
})

test('of two that use a link at once, one sets the password', async () => {
  const box = await appliance({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' })
  const token = await tokenOf(box)
  const inputs = ['one long evening', 'the other evening'].map((password) => ({ ...person, token, password }))
  const answers = await Promise.all(inputs.map((input) => finish(box, input)))
  expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 403])
  const winner = inputs[answers.findIndex(({ status }) => status === 200)]!
  expect((await attempt(box, { email: winner.email, password: winner.password })).status).toBe(200)
})

test('a link is good for a day, and until there is another', async () => {
  const clock = new HeldClock()
  const box = await appliance({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' }, clock)
  const first = await tokenOf(box)
  const second = await tokenOf(box)
  expect((await finish(box, { ...person, token: first })).body.error['code']).toBe('setup_link_invalid')
  clock.advance(day)
  expect((await finish(box, { ...person, token: second })).body.error['code']).toBe('setup_link_invalid')
  const third = await tokenOf(box)
  clock.advance(day - 1000)
  expect((await finish(box, { ...person, token: third })).status).toBe(200)
})

test('tokens are tried as slowly as passwords, from our pages only, and nothing of a link is kept or logged', async () => {
  const box = await appliance({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '3' })
  const token = await tokenOf(box)
  const foreign = await finish(box, { ...person, token }, { Origin: 'https://evil.test' })
  expect([foreign.status, foreign.body.error['code']]).toEqual([403, 'csrf'])
  const guesses = await Promise.all(['a', 'b', 'c', 'd'].map((guess) => finish(box, { ...person, token: guess })))
  expect(guesses.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([403, 403, 403, 429])
  await box.app.stop()
  expect(box.logged.join('\n')).not.toContain(token)
  // the whole directory, as whoever steals the disk would look
  // -e, as a token may begin with a hyphen
  expect(spawnSync('grep', ['-rqF', '-e', token, `${box.directory}/data`]).status).toBe(1)
})

test('the first start prints a link that is good, and the command makes one in its place', async () => {
  const directory = folder()
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(directory, 'data') }
  const box = boxProcess(env)
  const { api } = await box.said('started')
  await vi.waitFor(() => expect(box.output()).toMatch(/\n# 3\. read it\n/), { timeout: 100_000 })
  const printed = new RegExp(`^${api}/setup#token=(\\S{43})$`, 'm').exec(box.output())!
  const pillarbox = (...parameters: string[]) =>
    run(process.execPath, [main, 'account', 'setup-link', ...parameters], { cwd: directory, env })
  const other = await pillarbox('--json')
  expect([other.code, other.errors]).toEqual([0, ''])
  const { url } = JSON.parse(other.output.toString())
  const answers = await Promise.all(
    [printed[1], url.split('=')[1]].map((token) =>
      fetch(`${api}/v1/setup`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Origin: api },
        body: JSON.stringify({ ...person, token }),
      }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual([403, 200])
  const late = await pillarbox()
  expect([late.code, late.errors]).toEqual([1, expect.stringContaining('has a password already')])
  expect(await box.end('SIGTERM')).toBe(0)
})

test('a new link is made on the machine of the box alone', async () => {
  const box = await appliance()
  const { body } = await box.call('GET', '/v1/accounts')
  const told = await box.call('POST', `/v1/accounts/${body.data[0]!['id']}/setup-link`)
  expect([told.status, told.body.error['code']]).toEqual([403, 'local_only'])
})
