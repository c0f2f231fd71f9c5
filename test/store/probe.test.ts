import { expect, test, vi } from 'vitest'
import { storageFull } from '../../src/core/fault.ts'
import type { Database } from '../../src/store/database.ts'
import { WriteProbe } from '../../src/store/probe.ts'

test('a disk that does not answer is asked once, and counts as failing until it does', async () => {
  vi.useFakeTimers()
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const probe = vi.fn<() => Promise<void>>(() => held)
  const store = new WriteProbe({ probe } as unknown as Database, { now: () => Date.now() })
  const answers = Promise.all([store.check(), store.check()])
  await vi.advanceTimersByTimeAsync(2000)
  expect(await answers).toEqual(['failing', 'failing'])
  const later = store.check()
  release()
  expect(await later).toBe('sound')
  expect(probe).toHaveBeenCalledTimes(1)
  vi.useRealTimers()
})

test('a failing store is told for what it is, and a mended one two seconds later at most', async () => {
  let time = 0
  let broken = true
  const probe = async (): Promise<void> => {
    if (broken) throw new Error('the disk is gone')
  }
  const store = new WriteProbe({ probe } as unknown as Database, { now: () => time })
  expect(await store.check()).toBe('failing')
  broken = false
  time = 2000
  expect(await store.check()).toBe('sound')
})

test('a store that only lacks room says so', async () => {
  const store = new WriteProbe({ probe: () => Promise.reject(storageFull()) } as unknown as Database, { now: () => 0 })
  expect(await store.check()).toBe('full')
})
