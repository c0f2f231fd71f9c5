import { expect, test, vi } from 'vitest'
import type { Database } from '../../src/store/database.ts'
import { Probe } from '../../src/store/probe.ts'

test('a disk that does not answer is asked once, and counts as failing until it does', async () => {
  vi.useFakeTimers()
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const probe = vi.fn<() => Promise<void>>(() => held)
  const store = new Probe({ probe } as unknown as Database, { now: () => Date.now() })
  const answers = Promise.all([store.sound(), store.sound()])
  await vi.advanceTimersByTimeAsync(2000)
  expect(await answers).toEqual([false, false])
  const later = store.sound()
  release()
  expect(await later).toBe(true)
  expect(probe).toHaveBeenCalledTimes(1)
  vi.useRealTimers()
})

test('a failing store is told for what it is, and a mended one two seconds later at most', async () => {
  let time = 0
  let broken = true
  const probe = async (): Promise<void> => {
    if (broken) throw new Error('the disk is gone')
  }
  const store = new Probe({ probe } as unknown as Database, { now: () => time })
  expect(await store.sound()).toBe(false)
  broken = false
  time = 2000
  expect(await store.sound()).toBe(true)
})
