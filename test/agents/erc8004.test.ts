import { describe, expect, test } from 'vitest'
import { checksummed, isUnbroken } from '../../src/agents/erc8004.ts'
import { appliance, type Appliance } from '../support/appliance.ts'

/** Of EIP-55, “Test Cases”: all caps, all lower, normal. */
const vectors = [
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77',
  '0x27b1fdb04752bbc536007a920d24acb045561c26',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
]

describe('checksums of addresses', () => {
  test.each(vectors)('%s', (address) => {
    const digits = address.slice(2)
    for (const spelling of [address, `0x${digits.toLowerCase()}`, `0x${digits.toUpperCase()}`]) {
      expect(checksummed(spelling)).toBe(address)
      expect(isUnbroken(spelling)).toBe(true)
    }
  })

  test('one letter in the other case, or one digit changed, is seen', () => {
    const right = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
    const broken = Array.from(right, (letter, index) => {
      const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
      const digit = /[0-8]/.test(letter) ? String(Number(letter) + 1) : other
      return right.slice(0, index) + digit + right.slice(index + 1)
    }).slice(2)
    expect(broken.filter((address) => address === right || isUnbroken(address))).toEqual(
      broken.filter((address) => address === right),
    )
    expect(broken.filter((address) => address !== right).length).toBeGreaterThan(30)
  })
})

const registry = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432'

async function agent(box: Appliance, name: string): Promise<string> {
  const { body: identity } = await box.call('POST', '/v1/identities', { name })
  return `/v1/agents/${(await box.call('POST', '/v1/agents', { identity_id: identity.id })).body.id}`
}

test('a link is made, listed and removed, in checksum case, and is told of', async () => {
  const box = await appliance()
  const at = await agent(box, 'Ada')
  const input = {
    chain_id: 'eip155:8453',
    registry: registry.toUpperCase().replace('0X', '0x'),
    token_id: 22,
    owner_address: vectors[4]!.toLowerCase(),
    tx_hash: `0x${'AB'.repeat(32)}`,
  }
  const made = await box.call('POST', `${at}/erc8004`, input)
  expect(made.status).toBe(201)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^link_/) as string,
    chain_id: 8453,
    registry,
    token_id: '22',
    owner_address: vectors[4],
    tx_hash: `0x${'ab'.repeat(32)}`,
    status: 'unverified',
    created_at: expect.stringMatching(/Z$/) as string,
  })
  const { body: bare } = await box.call('POST', `${at}/erc8004`, { chain_id: 1, registry, token_id: '0' })
  expect(Object.keys(bare)).toEqual(['id', 'chain_id', 'registry', 'token_id', 'status', 'created_at'])
  await box.restart()
  expect((await box.call('GET', `${at}/erc8004`)).body.data).toEqual([bare, made.body])
  expect((await box.call('DELETE', `${at}/erc8004/${made.body.id}`)).body).toEqual({ id: made.body.id, deleted: true })
  expect((await box.call('DELETE', `${at}/erc8004/${made.body.id}`)).status).toBe(404)
  expect((await box.call('GET', `${at}/erc8004`)).body.data).toEqual([bare])
  const { body: shown } = await box.call('GET', at)
  const { body: events } = await box.call('GET', `/v1/identities/${shown.identity_id}/events`)
  expect(events.data.map(({ type }) => type as string)).toEqual([
    'agent.updated',
    'agent.updated',
    'agent.updated',
    'agent.created',
    'identity.created',
  ])
})

test('a token is one agent’s on the whole box, however it is spelt, and free again once unlinked', async () => {
  const box = await appliance()
  const [ada, bob] = [await agent(box, 'Ada'), await agent(box, 'Bob')]
  const spelt = [
    { chain_id: 1, registry, token_id: '22' },
    { chain_id: '1', registry: registry.toLowerCase(), token_id: 22 },
    { chain_id: 'eip155:1', registry, token_id: '22' },
  ]
  const all = await Promise.all([ada, bob, ada, bob].map((at, index) => box.call('POST', `${at}/erc8004`, spelt[index % 3])))
  expect(all.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 409, 409, 409])
  const refused = all.find(({ status }) => status === 409)!
  expect(refused.body.error).toMatchObject({ type: 'conflict', param: 'token_id' })
  const winner = all.findIndex(({ status }) => status === 201) % 2 === 0 ? ada : bob
  for (const other of [{ chain_id: 2 }, { token_id: '23' }, { registry: vectors[4] }]) {
    expect((await box.call('POST', `${bob}/erc8004`, { ...spelt[0], ...other })).status).toBe(201)
  }
  await box.call('DELETE', winner)
  expect((await box.call('POST', `${winner === ada ? bob : ada}/erc8004`, spelt[0])).status).toBe(201)
})

test('what cannot be is refused, and a wrong checksum with what would be right', async () => {
  const box = await appliance()
  const at = await agent(box, 'Ada')
  const good = { chain_id: 1, registry, token_id: '22' }
  const wrong: [Record<string, unknown>, string][] = [
    ...[0, -1, 1.5, '', 'one', '0', '01', 'eip155:', 'eip155:0', 'solana:1', '9007199254740993', null].map(
      (chain_id): [Record<string, unknown>, string] => [{ chain_id }, 'chain_id'],
    ),
    ...['', '0x', registry.slice(2), `${registry}0`, registry.slice(0, -1), 'vitalik.eth', registry.replace('0x', '0X')].map(
      (text): [Record<string, unknown>, string] => [{ registry: text }, 'registry'],
    ),
    ...['', '-1', '1.0', '022', '0x16', (2n ** 256n).toString(), '9'.repeat(100), -1, 1.5].map(
      (token_id): [Record<string, unknown>, string] => [{ token_id }, 'token_id'],
    ),
    [{ owner_address: '0x12' }, 'owner_address'],
    [{ tx_hash: `0x${'a'.repeat(63)}` }, 'tx_hash'],
    [{ owner_address: registry.replace('A169', 'a169') }, 'owner_address'],
  ]
  for (const [fields, param] of wrong) {
    const { status, body } = await box.call('POST', `${at}/erc8004`, { ...good, ...fields })
    expect([fields, status, body.error]).toMatchObject([fields, 400, { type: 'invalid_request', param }])
  }
  const { body } = await box.call('POST', `${at}/erc8004`, { ...good, registry: registry.replace('A169', 'a169') })
  expect(body.error['message']).toContain(registry)
  expect((await box.call('GET', `${at}/erc8004`)).body.data).toEqual([])
})
