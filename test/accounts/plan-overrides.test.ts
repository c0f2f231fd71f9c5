import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test } from 'vitest'
import { keyHash, newKey } from '../../src/accounts/secret.ts'
import { newId } from '../../src/core/ids.ts'
import { scopes } from '../../src/core/scopes.ts'
import type { State } from '../../src/store/state.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { folder } from '../support/folder.ts'
import { limit, limitsAsEnv, refused, subscription } from './limited.ts'

/** Changes state.json as an operator does, by hand. */
function edit(directory: string, change: (state: State) => void): void {
  const file = join(directory, 'data', 'state.json')
  const state = JSON.parse(readFileSync(file, 'utf8')) as State
  change(state)
  writeFileSync(file, JSON.stringify(state))
}

/** A key of an account that nobody else is in, written straight into the store. */
function otherAccount(box: Appliance): { account: string; key: string } {
  const db = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const [account, key] = [newId('acct'), newKey()]
  db.prepare(
    `INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, created_at) VALUES (?, ?, 'other', ?, 'pbx_', ?, '2026-11-20T00:00:00.000Z')`,
  ).run(newId('key'), account, JSON.stringify(scopes), keyHash(key))
  db.close()
  return { account, key }
}

const create = async (box: Appliance, key = box.key): Promise<string | null> =>
  refused(await box.call('POST', '/v1/identities', {}, { key }))

test('an account in state.json has limits of its own, at the start and when it is told to read again', async () => {
  const box = await appliance(limitsAsEnv({ identities: 2, cards: 5 }))
  const other = otherAccount(box)
  await box.app.stop()
  edit(box.directory, ({ accounts }) => {
    accounts[0]!.limits = { identities: 1 }
    accounts.push({ id: other.account, name: 'Other', created_at: '2026-11-20T00:00:00.000Z', limits: { identities: null } })
  })
  await box.restart()
  expect((await subscription(box)).limits).toMatchObject({ identities: 1, cards: 5 })
  expect((await subscription(box, other.key)).limits).toMatchObject({ identities: null, cards: 5 })
  expect([await create(box), await create(box)]).toEqual([null, expect.stringMatching(/may have 1 identity, and has 1/)])
  for (let turn = 0; turn < 3; turn += 1) expect(await create(box, other.key)).toBeNull()
  expect((await subscription(box, other.key)).usage).toMatchObject({ identities: 3, api_keys: 1 })

  edit(box.directory, ({ accounts }) => void (accounts[0]!.limits = { identities: 3 }))
  await limit(box, { identities: 0 })
  expect([await create(box), await create(box), await create(box)]).toEqual([null, null, expect.any(String)])
  edit(box.directory, ({ accounts }) => void delete accounts[0]!.limits)
  await limit(box, { identities: 0 })
  expect((await subscription(box)).limits).toMatchObject({ identities: 0, cards: 5 })
  expect((await subscription(box)).usage).toMatchObject({ identities: 3 })
})

test('limits that make no sense are told with their place, and the box goes on with what it had', async () => {
  const box = await appliance()
  edit(box.directory, ({ accounts }) => void (accounts[0]!.limits = { identities: 4 }))
  await limit(box, { cards: 9 })
  for (const wrong of [{ identities: -1 }, { identitys: 5 }, { identities: '5' }]) {
    edit(box.directory, ({ accounts }) => void Object.assign(accounts[0]!, { limits: wrong }))
    await expect(limit(box, { cards: 1 })).rejects.toThrow(/state\.json is damaged: accounts\.0\.limits/)
  }
  expect((await subscription(box)).limits).toMatchObject({ identities: 4, cards: 9 })
})

test('HUP puts other limits into effect', async () => {
  const home = folder()
  const file = join(home, 'pillarbox.yaml')
  writeFileSync(file, 'limits:\n  identities: 1\n')
  const key = 'test-key-with-every-scope-1234567890'
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data'), PILLARBOX_BOOTSTRAP_KEY: key }
  const box = boxProcess(env, ['serve', '--config', file])
  const { api } = await box.said('started')
  const made = async (): Promise<number> => {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    return (await fetch(`${api}/v1/identities`, { method: 'POST', headers, body: '{}' })).status
  }
  expect([await made(), await made()]).toEqual([201, 403])
  writeFileSync(file, 'limits:\n  identities: 2\n')
  box.child.kill('SIGHUP')
  await box.said('settings reloaded')
  expect([await made(), await made()]).toEqual([201, 403])
  expect(await box.end('SIGTERM')).toBe(0)
})
