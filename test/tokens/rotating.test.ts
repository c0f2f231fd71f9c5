import { expect, test } from 'vitest'
import { anotherAccount } from '../trust/accounts.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { boxProcess } from '../support/process.ts'

const path = '/v1/signing-keys/rotate'

test('the command lets the published next key sign, or replaces all, of a box that runs or not', async () => {
  // the box was opened an hour ago
  const clock = { ahead: -3_600_000, now: () => Date.now() + clock.ahead }
  const box = await appliance({}, clock)
  const [active, next] = await published(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const issue = async (): Promise<string> => (await box.call('POST', `/v1/identities/${ada.id}/token`)).body['token'] as string
  const isGood = async (token: string): Promise<unknown> => (await box.call('POST', '/v1/verify/token', { token })).body['valid']
  const rotate = async (...more: string[]): Promise<{ code: unknown; output: string; errors: string }> => {
    const program = boxProcess(box.env, ['key', 'rotate-signing', ...more], box.directory)
    const code = await program.ended
    return { code, output: program.output(), errors: program.errors() }
  }
  clock.ahead = 0
  const before = await issue()
  const done = await rotate()
  expect([done.code, done.errors]).toEqual([0, ''])
  expect(done.output).toContain(`The key ${next} signs from now on.`)
  expect(await published(box)).toEqual([next, expect.any(String), active])
  const after = await issue()
  for (const token of [before, after]) expect(await isGood(token)).toBe(true)
  const again = await rotate()
  expect([again.code, again.errors]).toEqual([1, expect.stringMatching(/it can be used in \d+ min.*--now/s)])

  // others have the keys: nothing is stopped for that
  const known = await published(box)
  const replaced = JSON.parse((await rotate('--now', '--json')).output) as { kid: string; replaced_all: boolean }
  const fresh = await published(box)
  expect(replaced).toEqual({ kid: fresh[0], replaced_all: true })
  expect([fresh.length, fresh.filter((kid) => known.includes(kid))]).toEqual([2, []])
  for (const token of [before, after]) expect(await isGood(token)).toBe(false)
  expect(await isGood(await issue())).toBe(true)

  await box.app.stop()
  expect(await rotate('--now')).toMatchObject({ code: 0 })
  await box.restart()
  expect((await published(box)).filter((kid) => fresh.includes(kid))).toEqual([])
}, 180_000)

test('the keys of the box are its operator’s: other accounts, bound keys and keys without the scope change nothing', async () => {
  const box = await appliance()
  const before = await published(box)
  const other = await anotherAccount(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const keyOf = async (input: object): Promise<string> => (await box.call('POST', '/v1/api-keys', input)).body['key'] as string
  const bound = await keyOf({ identity_id: ada.id })
  const narrow = await keyOf({ scopes: ['identities:write', 'account:read'] })
  expect((await other('POST', path, { now: true })).body.error).toMatchObject({ status: 403, code: 'operator_only' })
  expect((await box.call('POST', path, { now: true }, { key: bound })).status).toBe(403)
  expect((await box.call('POST', path, { now: true }, { key: narrow })).body.error).toMatchObject({ code: 'insufficient_scope' })
  expect((await box.call('POST', path, { now: true }, { key: null })).status).toBe(401)
  expect((await box.call('POST', path, { at_once: true })).body.error).toMatchObject({ status: 400, param: 'at_once' })
  expect((await box.call('POST', path)).body.error).toMatchObject({ status: 409, code: 'signing_key_too_new' })
  expect(await published(box)).toEqual(before)
})

async function published(box: Appliance): Promise<string[]> {
  const { body } = await box.call<{ keys: { kid: string }[] }>('GET', '/.well-known/jwks.json', undefined, { key: null })
  return body.keys.map(({ kid }) => kid)
}
