import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { FairTurns } from '../../src/core/work/fair-turns.ts'

test('long work gives way to an account that used less, and ends all the same', async () => {
  const turns = new FairTurns(20)
  const order: string[] = []
  let starts = 0
  const long = turns.run('long', async (stopped) => {
    starts += 1
    await sleep(150, undefined, { signal: stopped })
    order.push('long')
  })
  // one that asks for something short again and again
  const short = async (): Promise<void> => {
    while (!order.includes('long')) {
      await turns.run('short', async () => void order.push('short'))
      await sleep(5)
    }
  }
  await Promise.all([long, short()])
  expect(order[0]).toBe('short')
  expect(starts).toBeGreaterThan(1)
  expect(starts).toBeLessThan(8)
})

test('what is stopped by its caller leaves its place', async () => {
  const turns = new FairTurns(1000)
  const gone = new AbortController()
  const first = turns.run('a', () => sleep(20))
  const waiting = turns.run('b', async () => expect.unreachable(), gone.signal)
  gone.abort()
  await expect(waiting).rejects.toThrow('aborted')
  await first
  await expect(turns.run('a', async () => 'done')).resolves.toBe('done')
})
