import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Caller } from '../../src/core/scopes.ts'
import type { TotpCode } from '../../src/totp/model.ts'
import { CodeReader } from '../../src/totp/reading.ts'
import { HeldClock } from '../support/held-clock.ts'

/** A reader of one entry whose codes change every 30 seconds, one second after such a change, and the number of its reads. */
function scene() {
  const clock = new HeldClock()
  clock.advance(30_000 - (clock.now() % 30_000) + 1000)
  const row = { account_id: 'acct_1', service_name: 'X', algorithm: 'SHA1', digits: 6, period: 30 }
  const reads: unknown[] = []
  const reader = new CodeReader({
    clock,
    entries: { row: async () => row },
    secrets: { read: async () => Buffer.from('48656c6c6f21deadbeef', 'hex') },
    database: { transaction: (work: (tx: unknown) => Promise<unknown>) => work({}) },
    events: { append: async (...event: unknown[]) => reads.push(event) },
    admitted: async () => true,
  } as never)
  const read = (remaining: number, key_id = 'key_1', turn: () => Promise<void> = async () => undefined): Promise<TotpCode> => {
    const caller = { account_id: 'acct_1', key_id, session_id: null, user_agent: '' } as unknown as Caller
    return reader.read(caller, 'ident_1', 'totp_1', remaining * 1000, { signal: new AbortController().signal, turn })
  }
  return { clock, read, reads }
}

test('of one key 500 calls wait for the next code at once, of an account 1,000; who need not wait is not refused', async () => {
  const { clock, read } = scene()
  const begin = (count: number, key: string): Promise<TotpCode>[] => Array.from({ length: count }, () => read(29.5, key))
  const calls = begin(500, 'key_1')
  await sleep(10)
  await expect(read(29.5, 'key_1')).rejects.toMatchObject({ type: 'rate_limited', code: 'too_many_waits', retryAfter: 1 })
  calls.push(...begin(500, 'key_2'))
  await sleep(10)
  await expect(read(29.5, 'key_3')).rejects.toMatchObject({ message: expect.stringMatching(/^1000 calls of this account/) })
  expect(await read(5, 'key_1')).toMatchObject({ remaining_seconds: 29 })
  clock.advance(29_000)
  for (const { remaining_seconds } of await Promise.all(calls)) expect(remaining_seconds).toBe(30)
  expect(await read(29.5, 'key_1')).toMatchObject({ remaining_seconds: 30 })
})

test('a wait for the next code goes on when it is its account’s turn', async () => {
  const { clock, read, reads } = scene()
  const { promise, resolve } = Promise.withResolvers<void>()
  let asked = 0
  const call = read(29.5, 'key_1', () => {
    asked += 1
    return promise
  })
  await sleep(10)
  clock.advance(29_000)
  await vi.waitFor(() => expect(asked).toBe(1), 100_000)
  await sleep(10)
  expect(reads).toHaveLength(0)
  resolve()
  expect(await call).toMatchObject({ remaining_seconds: 30 })
  expect([asked, reads.length]).toEqual([1, 1])
})
