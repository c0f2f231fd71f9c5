import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Space } from '../../src/store/space.ts'
import { folder } from '../support/folder.ts'

const measured = (free: () => number) => (): Promise<{ bsize: number; bavail: number }> =>
  Promise.resolve({ bsize: 4096, bavail: free() / 4096 })

it('is low below the minimum, until an eighth more is free', async () => {
  let free = 8192 * 100
  const space = new Space('/', 8192 * 80, { statfs: measured(() => free) })
  const seen: boolean[] = []
  for (const pages of [100, 80, 79, 80, 89, 90, 85, 79]) {
    free = 8192 * pages
    await space.check()
    seen.push(space.low())
  }
  expect(seen).toEqual([false, false, true, true, true, false, false, true])
})

it('keeps what it knew when the disk does not answer', async () => {
  let free = 0
  const space = new Space('/', 4096, {
    statfs: measured(() => {
      if (free < 0) throw new Error('EIO')
      return free
    }),
  })
  await space.check()
  free = -1
  await space.check()
  expect(space.low()).toBe(true)
})

it('looks again by itself until it is stopped', async () => {
  let looks = 0
  const space = new Space('/', 1, { statfs: measured(() => (looks += 1)) })
  await space.start(1)
  expect(looks).toBe(1)
  for (let wait = 0; wait < 500; wait++) {
    if (looks >= 4) break
    await sleep(2)
  }
  expect(looks).toBeGreaterThanOrEqual(4)
  await space.stop()
  await sleep(5)
  const stopped = looks
  await sleep(30)
  expect(looks).toBe(stopped)
})

it('reads the real disk', async () => {
  const roomy = new Space(folder(), 1)
  const cramped = new Space(folder(), Number.MAX_SAFE_INTEGER)
  await Promise.all([roomy.check(), cramped.check()])
  expect([roomy.low(), cramped.low()]).toEqual([false, true])
})
