import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { allAttempts } from '../../support/attempts.ts'
import { child } from '../../support/child.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { hangs, heartbeat, QueueOfBox, type TestLoad } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `queues_${(count += 1)}`)
  await preparePostgres(target, false)
})

async function started(act?: (load: TestLoad, signal: AbortSignal) => Promise<string>, at = target): Promise<QueueOfBox> {
  const { database } = await opened(at, { shared: true, heartbeat })
  const box = new QueueOfBox(database, act)
  await box.queue.start()
  onTestFinished(() => box.queue.stop())
  return box
}

const rows = (query: string): Promise<Record<string, unknown>[]> => postgres().run(target.database, query)

test('boxes share the queue: each delivery is attempted once, and a lane by one box at a time', async () => {
  const under = new Map<string, Map<number, number>>()
  const shared: string[] = []
  const boxes = await Promise.all(
    [0, 1, 2].map((number) =>
      started(async ({ lane }) => {
        const those = under.get(lane) ?? new Map<number, number>()
        under.set(lane, those.set(number, (those.get(number) ?? 0) + 1))
        if ([...those.values()].filter((open) => open > 0).length > 1) shared.push(lane)
        await sleep(5 + Math.random() * 20)
        those.set(number, those.get(number)! - 1)
        return 'thanks'
      }),
    ),
  )
  const texts = Array.from({ length: 240 }, (_, number) => `delivery ${number}`)
  await Promise.all(
    boxes.map(async (box, number) => {
      for (const [index, text] of texts.entries()) if (index % 3 === number) await box.enqueue(text, `lane${index % 13}`)
    }),
  )
  const left = "SELECT count(*)::int AS n FROM deliveries_queue WHERE state <> 'done'"
  // none is left behind by a box that did not hear of it
  for (let look = 0; (await rows(left))[0]!['n'] !== 0; look += 1) {
    await sleep(100)
    if (look % 20 === 19) for (const { queue } of boxes) queue.wake()
  }
  expect(boxes.flatMap(({ made }) => made).toSorted()).toEqual(texts.map((text) => `${text} 1`).toSorted())
  expect(boxes.flatMap(({ settled }) => settled)).toHaveLength(texts.length)
  expect(shared).toEqual([])
  expect(await rows(`SELECT outcome, count(*)::int AS n FROM ${allAttempts} GROUP BY outcome`)).toEqual([
    { outcome: 'done', n: texts.length },
  ])
})

test('what another box enqueues into a lane in which one has work under way does not wait for its end', async () => {
  const one = await started(({ text }, signal) =>
    text === 'slow' ? hangs({ lane: '', text }, signal) : Promise.resolve('thanks'),
  )
  await one.enqueue('first', 'lane')
  await expect.poll(() => one.settled.length).toBe(1)
  await one.enqueue('slow', 'lane')
  await expect.poll(() => one.made).toContain('slow 1')
  const other = await started()
  await other.enqueue('next', 'lane')
  await expect.poll(() => one.made, { timeout: 20_000 }).toContain('next 1')
  expect(other.made).toEqual([])
})

test('what a living box has under way is its own; of one that was killed, another takes it up, once', async () => {
  const box = await started()
  const killed = child('store/postgres/children/hang.ts', [postgres().url(target.database), 'a', 'b', 'c'])
  await killed.until(3)
  expect(killed.lines()).toHaveLength(3)
  await box.enqueue('after', 'a')
  await sleep(heartbeat.ended + 1000)
  expect(box.made).toEqual([])
  await killed.kill()
  await expect.poll(() => box.settled.length).toBe(4)
  expect(box.made.toSorted()).toEqual(['after 1', 'killed in a 2', 'killed in b 2', 'killed in c 2'])
  expect(await rows(`SELECT outcome, count(*)::int AS n FROM ${allAttempts} GROUP BY outcome ORDER BY outcome`)).toEqual([
    { outcome: 'done', n: 4 },
    { outcome: 'interrupted', n: 3 },
  ])
})

test('a box that is cut off stops its attempts before another makes them, and goes on when it is back', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const order: string[] = []
  let held = true
  const cut = await started(
    async (load, signal) => {
      if (!held) return 'thanks'
      signal.addEventListener('abort', () => order.push('stopped'))
      return hangs(load, signal)
    },
    { ...target, port: proxy.port },
  )
  await cut.enqueue('first', 'a')
  await expect.poll(() => cut.made).toEqual(['first 1'])
  const other = await started(async () => {
    order.push('made by the other')
    return 'thanks'
  })
  proxy.block()
  await expect.poll(() => order).toEqual(['stopped', 'made by the other'])
  await expect.poll(() => other.settled).toEqual([['first', 'done']])
  held = false
  proxy.unblock()
  await expect
    .poll(() =>
      cut.enqueue('second', 'b').then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  await expect.poll(() => [...cut.settled, ...other.settled].length).toBe(2)
  expect(other.made).toContain('first 2')
  expect(await rows(`SELECT number::int, outcome FROM ${allAttempts} WHERE delivery_seq = 1 ORDER BY number`)).toEqual([
    { number: 1, outcome: 'interrupted' },
    { number: 2, outcome: 'done' },
  ])
})

test('a result that comes after another box took up the delivery changes nothing', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const end = Promise.withResolvers<string>()
  // it does not hear that it is to stop
  const deaf = await started(() => end.promise, { ...target, port: proxy.port })
  await deaf.enqueue('first', 'a')
  await expect.poll(() => deaf.made).toEqual(['first 1'])
  const other = await started()
  proxy.block()
  await expect.poll(() => other.settled).toEqual([['first', 'done']])
  const before = await rows('SELECT * FROM deliveries_queue')
  proxy.unblock()
  end.resolve('late thanks')
  await expect.poll(() => deaf.queue.work).toBeUndefined()
  expect(deaf.settled).toEqual([])
  expect(await rows('SELECT * FROM deliveries_queue')).toEqual(before)
  expect(await rows(`SELECT outcome, answer FROM ${allAttempts} ORDER BY number`)).toEqual([
    { outcome: 'interrupted', answer: null },
    { outcome: 'done', answer: 'thanks' },
  ])
})
