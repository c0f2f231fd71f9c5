import { expect, test } from 'vitest'
import { readingTurns } from '../../src/net/reading-turns.ts'

test('what is read may enter more, any number of times: it waits for its turn', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let depth = 0
  let deepest = 0
  let left = 100_000
  const read = (): void => {
    depth += 1
    deepest = Math.max(deepest, depth)
    left -= 1
    if (left > 0) readingTurns.enter('a', 'a', read)
    else resolve()
    depth -= 1
  }
  readingTurns.enter('a', 'a', read)
  await promise
  expect(deepest).toBe(1)
})

test('the work of many networks leaves the event loop free between', async () => {
  let turns = 0
  let done = 0
  const count = (): void => {
    turns += 1
    if (done < 200) setImmediate(count)
  }
  setImmediate(count)
  const all = Array.from({ length: 200 }, (_, number) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    readingTurns.enter(`${number}`, `${number}`, () => {
      for (const until = performance.now() + 1; performance.now() < until;);
      done += 1
      resolve()
    })
    return promise
  })
  await Promise.all(all)
  expect(turns).toBeGreaterThan(50)
})

test('networks have equal time, not equal numbers of slices', async () => {
  const order: string[] = []
  const enter = (network: string, milliseconds: number): Promise<void> =>
    new Promise((resolve) => {
      readingTurns.enter(network, network, () => {
        for (const until = performance.now() + milliseconds; performance.now() < until;);
        order.push(network)
        resolve()
      })
    })
  const dear = Array.from({ length: 10 }, () => enter('dear', 5))
  const cheap = Array.from({ length: 50 }, () => enter('cheap', 0.01))
  await Promise.all([...dear, ...cheap])
  // fifty slices of one are read before three of the other
  expect(order.lastIndexOf('cheap') - 49).toBeLessThan(4)
})
