import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { largeWork } from '../../src/core/work/long-work.ts'

const large = 2 * 1024 * 1024

/** Keeps the thread busy for so many milliseconds. */
async function busy(milliseconds: number): Promise<void> {
  for (const end = performance.now() + milliseconds; performance.now() < end;) await turn()
}

test('large messages are worked with one at a time, small ones at once', async () => {
  const order: string[] = []
  let open = 0
  const work = async (name: string): Promise<void> => {
    open += 1
    expect(open).toBe(1)
    await busy(5)
    order.push(name)
    open -= 1
  }
  const all = ['a', 'b', 'c'].map((name) => largeWork(`one-at-a-time ${name}`, large, () => work(name)))
  await largeWork('d', large - 1, async () => void order.push('small'))
  await Promise.all(all)
  expect(order).toEqual(['small', 'a', 'b', 'c'])
})

test('the account that used the least time comes first, whoever came before', async () => {
  const order: string[] = []
  const ask = (account: string, name: string) =>
    largeWork(account, large, async () => {
      await busy(20)
      order.push(name)
    })
  await ask('many', 'first')
  const all = [ask('other', 'running'), ask('many', 'second'), ask('many', 'third'), ask('new', 'new')]
  await Promise.all(all)
  expect(order).toEqual(['first', 'running', 'new', 'second', 'third'])
})

test('who leaves while they wait is passed over, and work that fails lets the next begin', async () => {
  const leaving = new AbortController()
  const order: string[] = []
  const failing = largeWork('a', large, async () => {
    await busy(5)
    throw new Error('it failed')
  })
  const left = largeWork('b', large, async () => void order.push('left'), leaving.signal)
  const next = largeWork('c', large, async () => void order.push('next'))
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  await expect(failing).rejects.toThrow('it failed')
  await next
  expect(order).toEqual(['next'])
})
