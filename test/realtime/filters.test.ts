import { RE2JS } from 're2js'
import { expect, onTestFinished, test, vi } from 'vitest'
import { accountKey } from '../support/account-key.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { identity, keyWith, token } from '../support/live.ts'
import { join, raw } from '../support/phoenix.ts'

type Client = Awaited<ReturnType<typeof raw>>

/** A socket with a token of the key. */
async function opened(box: Appliance, key?: string): Promise<Client> {
  const made = await token(box, {}, key)
  return raw(box, `apikey=${made.token}&vsn=2.0.0`)
}

/** Joins with one filter on all events; answers `ok`, or why it was refused. */
async function joined(client: Client, filter: string, topic = 'realtime:x'): Promise<string> {
  client.say(['1', '1', topic, 'phx_join', join([{ event: '*', table: 'agent_events', filter }])])
  const [reply] = await client.next(1)
  if (reply[4].status !== 'ok') return reply[4].response.reason as string
  await client.next(1)
  return 'ok'
}

/** A pattern of some 450 steps, another for each number. */
const large = (number: number): string => `data=match.x${number}${'[ab]'.repeat(440)}`

/** A list of 300 values, others for each number. */
const list = (number: number): string => `id=in.(${Array.from({ length: 300 }, (_, index) => number * 1000 + index).join(',')})`

test('a filter that many sockets have is read once, and asked once about each event', async () => {
  const box = await appliance()
  const { id } = await identity(box, 'Ada')
  const compiled = vi.spyOn(RE2JS, 'compile')
  const matched = vi.spyOn(RE2JS.prototype, 'matcher')
  onTestFinished(() => void vi.restoreAllMocks())
  const clients = await Promise.all(Array.from({ length: 20 }, () => opened(box)))
  for (const client of clients) expect(await joined(client, 'data=match.Ada [0-9]')).toBe('ok')
  for (let number = 1; number <= 5; number += 1) await box.call('PATCH', `/v1/identities/${id}`, { name: `Ada ${number}` })
  for (const client of clients) {
    const names = (await client.next(5)).map((frame) => frame[4].data.record.data.name)
    expect(names).toEqual(['Ada 1', 'Ada 2', 'Ada 3', 'Ada 4', 'Ada 5'])
  }
  expect(compiled).toHaveBeenCalledTimes(1)
  expect(matched).toHaveBeenCalledTimes(5)
})

test('the filters of a key, and of an account, are bounded together, and what is left makes room', async () => {
  const box = await appliance()
  const others = await Promise.all(
    ['one', 'two', 'three'].map((label) => keyWith(box, { label, scopes: ['identities:read', 'messages:read'] })),
  )
  const first = await Promise.all(Array.from({ length: 3 }, () => opened(box)))
  expect(await joined(first[0]!, large(1))).toBe('ok')
  expect(await joined(first[1]!, large(2))).toBe('ok')
  expect(await joined(first[2]!, large(3))).toMatch(
    /^ChannelRateLimitReached: The filters of one key or session .* the limit is 1000/,
  )
  expect(await joined(first[2]!, large(2))).toBe('ok')
  const second = await Promise.all([opened(box, others[0]!.key), opened(box, others[0]!.key)])
  expect(await joined(second[0], large(4))).toBe('ok')
  expect(await joined(second[1], large(5))).toBe('ok')
  const third = await opened(box, others[1]!.key)
  expect(await joined(third, large(6))).toMatch(/^ChannelRateLimitReached: The filters of one account .* the limit is 2000/)
  expect(await joined(await opened(box, accountKey(box)), large(6))).toBe('ok')
  first[0]!.webSocket.close()
  await first[0]!.closed
  expect(await joined(third, large(6))).toBe('ok')
})

test('the values that the filters of a key compare with are bounded together', async () => {
  const box = await appliance()
  const clients = await Promise.all(Array.from({ length: 2 }, () => opened(box)))
  let taken = 0
  let refused: string | undefined
  for (const client of clients) {
    for (let number = 0; number < 20 && refused === undefined; number += 1) {
      const answer = await joined(client, list(taken + 1), `realtime:${number}`)
      if (answer === 'ok') taken += 1
      else refused = answer
    }
  }
  expect([taken, refused]).toEqual([33, expect.stringMatching(/values to compare with.*the limit is 10000/)])
})

test('the sockets of an account are bounded together, and leave the rest to others', async () => {
  const box = await appliance({ PILLARBOX_REALTIME__MAX_SOCKETS_PER_ACCOUNT: '2' })
  const other = await keyWith(box, { label: 'other', scopes: ['identities:read', 'messages:read'] })
  await opened(box)
  const second = await opened(box, other.key)
  await expect(opened(box)).rejects.toThrow('429')
  await opened(box, accountKey(box))
  second.webSocket.close()
  await second.closed
  await opened(box)
})
