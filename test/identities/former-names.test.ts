import { openStore, type Store } from '../support/open-store.ts'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import { mayChoose } from '../../src/identities/claims.ts'
import { type Reader, sql, type Sql } from '../../src/store/database.ts'
import { opened } from '../store/opened.ts'
import { accountKey } from '../support/account-key.ts'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { upgraded } from '../support/upgraded.ts'

/** An account whose deleted identities have had 999 addresses, and whose deleted agents 999 handles, besides generated ones. */
async function scene() {
  const box = await appliance()
  const account = newId('acct')
  const key = accountKey(box, account)
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database.exec('BEGIN')
  for (let number = 0; number < 999; number += 1) {
    deleted(database, account, `former-${number}`)
    deleted(database, account, `agent-${String(number).padStart(10, '0')}`)
  }
  database.exec('COMMIT')
  database.close()
  const make = async (body: object, by = key) => (await box.call('POST', '/v1/identities', body, { key: by })).body
  const leave = (id: string) => box.call('DELETE', `/v1/identities/${id}`, undefined, { key })
  const agent = async (body: object, by = key) => (await box.call('POST', '/v1/agents', body, { key: by })).body
  return { box, key, make, leave, agent }
}

function deleted(database: Store, account: string, name: string): void {
  const [id, agent] = [newId('ident'), newId('agent')]
  database
    .prepare(
      `INSERT INTO identities (id, account_id, name, name_key, email, date_of_birth, status, metadata, created_at, updated_at)
        VALUES (?, ?, '', '', ?, '', 'deleted', '{}', '', '')`,
    )
    .run(id, account, `${name}@pillarbox.test`)
  database.prepare('INSERT INTO addresses (address, identity_id) VALUES (?, ?)').run(`${name}@pillarbox.test`, id)
  database.prepare('INSERT INTO agent_handles (handle, agent_id, account_id) VALUES (?, ?, ?)').run(name, agent, account)
}

const generated = /^agent-[a-z0-9]{10}@pillarbox\.test$/

test('an account whose deleted identities have a thousand addresses chooses no further one, and still gets generated ones', async () => {
  const { box, key, make, leave } = await scene()
  const last = await make({ email_username: 'wanted' })
  expect(last.email).toBe('wanted@pillarbox.test')
  // what is in use does not count
  const living = await make({ name: 'Ada' })
  expect(living.email).toBe('ada@pillarbox.test')
  await leave(last.id)
  const refusal = { error: { status: 409, code: 'too_many_addresses', param: 'email_username' } }
  for (const phone of [{}, { provision_phone: true }])
    expect(await make({ email_username: 'one-more', ...phone })).toMatchObject(refusal)
  for (const body of [{ name: 'Bob' }, {}, { name: 'Cy', provision_phone: true }])
    expect((await make(body)).email).toMatch(generated)
  expect((await box.call('GET', `/v1/identities/${living.id}`, undefined, { key })).body.email).toBe('ada@pillarbox.test')
  // neither another account nor the operator's is concerned
  expect((await make({ email_username: 'other' }, accountKey(box))).email).toBe('other@pillarbox.test')
  expect((await make({ email_username: 'operator' }, box.key)).email).toBe('operator@pillarbox.test')
})

test('to count them, no address at another domain is read', async () => {
  const { database } = await opened(folder())
  onTestFinished(() => database.close())
  const asked: Sql[] = []
  const get = (query: Sql): Promise<unknown> => database.get((asked.push(query), query))
  expect(await mayChoose({ get } as Reader, 'acct_a', 'pillarbox.test')).toBe(true)
  const plan = await database.all<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${asked[0]!}`)
  expect(plan.map(({ detail }) => detail)).toContain(
    'SEARCH identities USING COVERING INDEX identities_former (account_id=? AND <expr>=?)',
  )
})

test('an account whose agents have had a thousand other handles chooses no further one, and still gets generated ones', async () => {
  const { box, key, make, agent } = await scene()
  const people = await Promise.all(['Ada', 'Bob', 'Cy'].map((name) => make({ name })))
  const [ada, bob, cy] = people.map(({ id }) => id as string)
  const first = await agent({ identity_id: ada, handle: 'wanted' })
  expect(first.handle).toBe('wanted')
  await box.call('DELETE', `/v1/agents/${first.id}`, undefined, { key })
  const refusal = { error: { status: 409, code: 'too_many_handles', param: 'handle' } }
  expect(await agent({ identity_id: ada, handle: 'one-more' })).toMatchObject(refusal)
  const second = await agent({ identity_id: bob })
  expect(second.handle).toMatch(/^agent-[a-z0-9]{10}$/)
  const changed = await box.call('PATCH', `/v1/agents/${second.id}`, { handle: 'one-more' }, { key })
  expect(changed.body).toMatchObject(refusal)
  expect((await agent({ identity_id: cy })).handle).toMatch(/^agent-/)
  const { body: own } = await box.call('POST', '/v1/identities', { name: 'Dee' })
  expect((await agent({ identity_id: own.id, handle: 'one-more' }, box.key)).handle).toBe('one-more')
})

test('after an upgrade the handles of the agents that there are belong to their accounts', () => {
  const database = upgraded('0042', (old) => {
    old.exec(`INSERT INTO agents (id, account_id, identity_id, handle, display_name, capabilities, links, metadata, created_at, updated_at)
      VALUES ('agent_a', 'acct_a', 'ident_a', 'ada', 'Ada', '[]', '[]', '{}', '', '');
      INSERT INTO agent_handles (handle, agent_id) VALUES ('ada', 'agent_a'), ('former', 'agent_a'), ('gone', 'agent_b')`)
  })
  expect(database.prepare('SELECT handle, account_id FROM agent_handles ORDER BY handle').all()).toEqual([
    { handle: 'ada', account_id: 'acct_a' },
    { handle: 'former', account_id: 'acct_a' },
    { handle: 'gone', account_id: null },
  ])
})
