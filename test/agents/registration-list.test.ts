import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import { accountKey } from '../support/account-key.ts'
import { appliance } from '../support/appliance.ts'

const path = '/.well-known/agent-registration.json'

test('the list of the domain’s registrations is worked out once for all who ask, and never stale', async () => {
  const box = await appliance()
  const ask = async (): Promise<string> => (await fetch(`${box.url}${path}`)).text()
  const tokens = async (): Promise<unknown[]> =>
    (JSON.parse(await ask()) as { registrations: { agentId: unknown }[] }).registrations.map(({ agentId }) => agentId)
  const make = async (name: string): Promise<{ identity: string; agent: string }> => {
    const { body } = await box.call('POST', '/v1/identities', { name })
    const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: body.id })
    return { identity: body.id as string, agent: agent.id as string }
  }
  const registry = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432'
  const link = async (agent: string, token_id: number): Promise<string> =>
    (await box.call('POST', `/v1/agents/${agent}/erc8004`, { chain_id: 1, registry, token_id })).body['id'] as string
  const [ada, bob, cyd] = [await make('Ada'), await make('Bob'), await make('Cyd')]
  expect(await tokens()).toEqual([])
  const first = await link(ada.agent, 1)
  expect(await tokens()).toEqual([1])
  await link(bob.agent, 2)
  await link(cyd.agent, 3)
  expect(await tokens()).toEqual([1, 2, 3])
  await box.call('DELETE', `/v1/agents/${ada.agent}/erc8004/${first}`)
  expect(await tokens()).toEqual([2, 3])
  await box.call('PATCH', `/v1/identities/${bob.identity}`, { status: 'suspended' })
  expect(await tokens()).toEqual([3])
  await box.call('PATCH', `/v1/identities/${bob.identity}`, { status: 'active' })
  expect(await tokens()).toEqual([2, 3])
  await box.call('DELETE', `/v1/agents/${bob.agent}`)
  expect(await tokens()).toEqual([3])
  await box.call('DELETE', `/v1/identities/${cyd.identity}`)
  expect(await tokens()).toEqual([])
  await link(ada.agent, 4)

  // while it changes, whoever asks gets what was so at some moment, and at the end what is
  const changes = (async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      await box.call('PATCH', `/v1/identities/${ada.identity}`, { status: turn % 2 === 0 ? 'suspended' : 'active' })
    }
  })()
  const seen = await Promise.all(Array.from({ length: 60 }, () => tokens()))
  for (const one of seen) expect([[], [4]]).toContainEqual(one)
  await changes
  expect(await tokens()).toEqual([4])
  const [one, two] = [await fetch(`${box.url}${path}`), await fetch(`${box.url}${path}`)]
  expect(two.headers.get('etag')).toBe(one.headers.get('etag'))
})

test('one account has a thousand links in the list at most, so that it leaves room for others', async () => {
  const box = await appliance()
  const link = async (key: string, agent: string, token_id: number) =>
    (await box.call('POST', `/v1/agents/${agent}/erc8004`, { chain_id: 1, registry: `0x${'12'.repeat(20)}`, token_id }, { key }))
      .body
  const agentOf = async (key: string): Promise<string> => {
    const { body } = await box.call('POST', '/v1/identities', {}, { key })
    return (await box.call('POST', '/v1/agents', { identity_id: body.id }, { key })).body.id
  }
  const [strangers, others] = [accountKey(box), accountKey(box)]
  const [first, second, other, own] = await Promise.all([strangers, strangers, others, box.key].map(agentOf))
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const insert = database.prepare(
    "INSERT INTO erc8004_links (id, agent_id, chain_id, registry, token_id, created_at) VALUES (?, ?, 1, '', ?, '')",
  )
  database.exec('BEGIN')
  for (const agent of [second!, own!])
    for (let token = 0; token < 999; token += 1) insert.run(newId('link'), agent, `${agent} ${token}`)
  database.exec('COMMIT')
  database.close()
  expect(await link(strangers, first!, 1)).toMatchObject({ token_id: '1' })
  expect(await link(strangers, first!, 2)).toMatchObject({ error: { status: 409, code: 'too_many_links' } })
  expect(await link(others, other!, 3)).toMatchObject({ token_id: '3' })
  const more = await agentOf(box.key)
  for (const token of [4, 5]) expect(await link(box.key, more, token)).toMatchObject({ token_id: String(token) })
})
