import { expect, test } from 'vitest'
import { admitNetwork, kindOf, readingTurns } from '../../src/net/reading-turns.ts'

test('what is read may enter more, any number of times: it waits for its turn', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let depth = 0
  let deepest = 0
  let left = 100_000
  const read = (): void => {
    depth += 1
    deepest = Math.max(deepest, depth)
    left -= 1
    if (left > 0) readingTurns.enter('short', 'a', read)
    else resolve()
    depth -= 1
  }
  readingTurns.enter('short', 'a', read)
  await promise
  expect(deepest).toBe(1)
})

/** Iterations of the event loop while so many networks are read, each of which calls `work` for a millisecond of work. */
async function iterations(networks: number, reading: (work: () => void) => void): Promise<number> {
  let turns = 0
  let done = 0
  const count = (): void => {
    turns += 1
    if (done < networks) setImmediate(count)
  }
  setImmediate(count)
  const all = Array.from({ length: networks }, (_, number) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const work = (): void => {
      for (const until = performance.now() + 1; performance.now() < until;);
      done += 1
      resolve()
    }
    readingTurns.enter('short', `${number}`, () => reading(work))
    return promise
  })
  await Promise.all(all)
  return turns
}

test('the work of many networks leaves the event loop free between', async () => {
  expect(await iterations(200, (work) => work())).toBeGreaterThan(50)
})

test('work that a read leads to counts as its own', async () => {
  expect(await iterations(100, (work) => queueMicrotask(() => queueMicrotask(work)))).toBeGreaterThan(30)
})

test('networks have equal time, not equal numbers of slices', async () => {
  const order: string[] = []
  const enter = (network: string, milliseconds: number): Promise<void> =>
    new Promise((resolve) => {
      readingTurns.enter('long', network, () => {
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

test('while connections are accepted nothing is read, for as long as reading then has', async () => {
  const read: number[] = []
  let accepts = 0
  const accept = (): void => {
    accepts += 1
    readingTurns.accepted()
    if (read.length < 100) setImmediate(accept)
  }
  setImmediate(accept)
  await new Promise((resolve) => setImmediate(resolve))
  const before = accepts
  await Promise.all(
    Array.from(
      { length: 100 },
      (_, number) =>
        new Promise<void>((resolve) => {
          readingTurns.enter('short', `${number}`, () => {
            read.push(accepts)
            for (const until = performance.now() + 1; performance.now() < until;);
            resolve()
          })
        }),
    ),
  )
  // the first waited for many iterations, and reading was done in a few
  expect(read[0]! - before).toBeGreaterThan(20)
  expect(new Set(read).size).toBeLessThan(50)
})

test('all that waits is read when a server stops', () => {
  const read: number[] = []
  for (let number = 0; number < 50; number += 1) {
    readingTurns.enter('short', 'a', () => {
      read.push(number)
      if (number < 10) readingTurns.enter('short', 'a', () => read.push(100 + number))
    })
  }
  readingTurns.flush()
  expect(read.length).toBe(60)
})

test('a call waits for one handshake and one large packet at most, however many others send', async () => {
  const order: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  // the first is read at once, and what follows waits for it
  readingTurns.enter('short', 'first', () => {
    for (let number = 0; number < 100; number += 1) {
      for (const kind of ['handshake', 'long'] as const) readingTurns.enter(kind, `${number}`, () => order.push(kind))
    }
    readingTurns.enter('short', 'honest', () => resolve(void order.push('honest')))
  })
  await promise
  expect(order.indexOf('honest')).toBeLessThanOrEqual(2)
  while (readingTurns.size > 0) await new Promise((done) => setImmediate(done))
})

/** Has a call of a network read, which takes so long. */
function called(network: string, order: string[], milliseconds = 1): Promise<void> {
  return new Promise((resolve) => {
    readingTurns.enter(kindOf(Buffer.alloc(500), network), network, () => {
      for (const until = performance.now() + milliseconds; performance.now() < until;);
      order.push(network)
      resolve()
    })
  })
}

test('who was admitted does not wait behind strangers of any number of networks that use less', async () => {
  const order: string[] = []
  admitNetwork('honest', 'acct_a')
  // the honest client has used more than any stranger
  await Promise.all([1, 2, 3].map(() => called('honest', order)))
  const strangers = Array.from({ length: 200 }, (_, number) => called(`stranger ${number}`, order))
  await Promise.all([...strangers, called('honest', order)])
  expect(order.lastIndexOf('honest')).toBeLessThan(10)
})

test('what else the network of an admitted caller sends does not wait behind strangers either', async () => {
  const order: string[] = []
  admitNetwork('monitored', 'acct_b')
  await Promise.all([1, 2, 3].map(() => called('monitored', order, 5)))
  // each stranger has used a little
  const strangers = Array.from({ length: 20 }, (_, number) => `stranger ${number}`)
  await Promise.all(strangers.map((network) => called(network, order)))
  order.length = 0
  const all = [...strangers, ...strangers].map((network) => called(network, order))
  all.push(called('monitored', order))
  await Promise.all(all)
  expect(order.indexOf('monitored')).toBeLessThanOrEqual(1)
})
