import type { FileHandle } from 'node:fs/promises'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { Fault } from '../../src/core/fault.ts'
import { Metrics } from '../../src/core/metrics.ts'
import { TemporaryFailure, PermanentFailure } from '../../src/queue/courier.ts'
import { findDelivery, type QueuedDelivery } from '../../src/queue/history.ts'
import { InFlight } from '../../src/queue/in-flight.ts'
import { QueueStore } from '../../src/queue/queue-store.ts'
import { Queue } from '../../src/queue/queue.ts'
import { raw, type Reader, sql, type Sql, type Transaction } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { opened, quiet } from '../store/opened.ts'
import { allAttempts } from '../support/attempts.ts'
import { folder } from '../support/folder.ts'
import { HeldClock } from '../support/held-clock.ts'
import { settled } from '../support/settled.ts'
import { hang, Runner, type TestLoad } from './runner.ts'

const second = 1000
const hour = 3_600_000

let file: string
let database: SqliteDatabase
let clock: HeldClock
let runner: Runner
let queue: Queue

beforeEach(async () => {
  const made = await opened(folder())
  file = made.file
  database = made.database
  clock = new HeldClock()
  runner = new Runner()
  queue = fresh()
  onTestFinished(async () => {
    await queue.stop()
    await database.close()
  })
})

function fresh(): Queue {
  const made = new Queue({ database, clock, log: quiet, metrics: new Metrics(), random: () => 0.5, grace: 20 })
  made.add(runner)
  return made
}

const put = (text: string, to = 'there'): Promise<string> =>
  database.transaction((tx) => queue.enqueue(tx, { kind: 'test', lane: to, load: { to, text } satisfies TestLoad }))
const putFor = (account_id: string, text: string, to = 'there'): Promise<string> =>
  database.transaction((tx) => queue.enqueue(tx, { kind: 'test', lane: to, account_id, load: { to, text } satisfies TestLoad }))
const look = (id: string, to = 'there'): Promise<QueuedDelivery> => findDelivery(database, { kind: 'test', lane: to }, id)
/** Attempts that end well when their gate is opened. */
function gated(): { gates: (() => void)[]; wait: (signal: AbortSignal) => Promise<string> } {
  const gates: (() => void)[] = []
  const wait = (signal: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => {
      gates.push(() => resolve('thanks'))
      signal.addEventListener('abort', () => reject(new Error('cut')))
    })
  return { gates, wait }
}

const plan = async (query: ReturnType<typeof sql>): Promise<string> =>
  (await database.all<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${query}`)).map(({ detail }) => detail).join('\n')

test('what is enqueued leaves once it is on disk, and what the far side said is kept', async () => {
  await queue.start()
  const failing = database.transaction(async (tx) => {
    await queue.enqueue(tx, { kind: 'test', lane: 'there', load: { to: 'there', text: 'never' } })
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  const id = await put('a')
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'done', attempts: [{ number: 1, outcome: 'done', answer: 'thanks' }] })
  expect(runner.carried).toEqual(['a 1'])
  expect(runner.settled).toEqual([['a', 'done', 'thanks']])
})

test('the attempt is on disk before it is made', async () => {
  let during: QueuedDelivery | undefined
  await queue.start()
  const id = await put('a')
  runner.act = async () => {
    during = await look(id)
    return 'thanks'
  }
  await settled(queue)
  expect(runner.settled.length).toBe(1)
  expect(during).toMatchObject({ state: 'running', attempts: [{ number: 1, outcome: null, ended_at: null }] })
})

test('one that fails for now is tried at exactly the times of the list, and then has failed', async () => {
  runner.act = async () => {
    throw new TemporaryFailure('busy')
  }
  await queue.start()
  const id = await put('a')
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'waiting', due_at: '2026-11-20T10:05:05.000Z' })
  clock.advance(5 * second - 1)
  queue.wake()
  await settled(queue)
  expect(runner.carried).toEqual(['a 1'])
  clock.advance(1)
  queue.wake()
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'waiting', due_at: '2026-11-20T11:05:05.000Z' })
  clock.advance(hour)
  queue.wake()
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'failed' })
  clock.advance(1000 * hour)
  queue.wake()
  await settled(queue)
  expect(runner.carried).toEqual(['a 1', 'a 2', 'a 3'])
  expect(runner.settled.map(([, outcome]) => outcome)).toEqual(['deferred', 'deferred', 'failed'])
  expect((await look(id)).attempts.map(({ answer }) => answer)).toEqual(['busy', 'busy', 'busy'])

  // and once more from the beginning, when somebody asks
  runner.act = async () => 'at last'
  expect(await database.transaction((tx) => queue.retry(tx, id))).toBe(true)
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'done', attempts: [{}, {}, {}, { number: 4, answer: 'at last' }] })
})

test('a refusal is final, a bug is not, and who asks for time gets it', async () => {
  runner.act = async ({ text }) => {
    if (text === 'unwanted') throw new PermanentFailure('no such person')
    if (text === 'patience') throw new TemporaryFailure('in a while', 2 * hour)
    throw new TypeError('a slip of ours')
  }
  await queue.start()
  const [unwanted, timeout, bug] = [await put('unwanted'), await put('patience'), await put('bug')]
  await settled(queue)
  expect(await look(unwanted)).toMatchObject({ state: 'failed', attempts: [{ outcome: 'failed', answer: 'no such person' }] })
  expect(await look(timeout)).toMatchObject({ state: 'waiting', due_at: '2026-11-20T12:05:00.000Z' })
  expect(await look(bug)).toMatchObject({ state: 'waiting', attempts: [{ outcome: 'deferred', answer: 'a slip of ours' }] })
})

test('what the store did not let an attempt read is attempted again before long, and takes no place in the list', async () => {
  let away = true
  runner.act = async () => {
    if (away)
      throw new Fault('internal_error', 'The database server is not available.', { code: 'storage_unavailable', retryAfter: 3 })
    throw new TemporaryFailure('busy')
  }
  runner.schedule = [0, hour, 2 * hour]
  await queue.start()
  const id = await put('a')
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'waiting', due_at: '2026-11-20T10:05:03.000Z' })
  away = false
  clock.advance(3 * second)
  queue.wake()
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'waiting', due_at: '2026-11-20T11:05:03.000Z' })
})

test('a message that the store does not give at all fails by the list, as any other', async () => {
  runner.act = async () => {
    throw new Fault('internal_error', 'The store does not have it.', { code: 'storage_unavailable', retryAfter: 3 })
  }
  await queue.start()
  const id = await put('a')
  for (let minute = 0; minute < 200; minute += 1) {
    await settled(queue)
    clock.advance(60 * second)
    queue.wake()
  }
  await settled(queue)
  expect(await look(id)).toMatchObject({ state: 'failed' })
})

test('what is enqueued leaves after one flush of the disk, in which its attempt is already recorded', async () => {
  let flushes = 0
  const sync = async (handle: FileHandle): Promise<void> => {
    flushes += 1
    await handle.datasync()
  }
  const made = await opened(folder(), { sync })
  const other = new Queue({ database: made.database, clock, log: quiet, metrics: new Metrics(), grace: 20 })
  onTestFinished(async () => {
    await other.stop()
    await made.database.close()
  })
  const seen: number[] = []
  other.add(Object.assign(new Runner(), { deliver: async () => `${seen.push(flushes)}` }))
  await other.start()
  const before = flushes
  await made.database.transaction((tx) => other.enqueue(tx, { kind: 'test', lane: 'there', load: { to: 'there', text: 'a' } }))
  await settled(other)
  expect(seen).toEqual([before + 1])
})

test('a lane has one under way until one went well, then sixteen, and no lane waits for another', async () => {
  const open = new Map<string, number>()
  const most = new Map<string, number>()
  const gates: (() => void)[] = []
  let held = true
  runner.act = async ({ to }, attempt, signal) => {
    if (to === 'dead') return hang({ to, text: '' }, attempt, signal)
    open.set(to, (open.get(to) ?? 0) + 1)
    most.set(to, Math.max(most.get(to) ?? 0, open.get(to)!))
    if (held && to === 'slow') await new Promise<void>((resolve) => gates.push(resolve))
    open.set(to, open.get(to)! - 1)
    return 'thanks'
  }
  await queue.start()
  for (let count = 0; count < 20; count += 1) {
    await put(`d${count}`, 'dead')
    await put(`s${count}`, 'slow')
  }
  for (let count = 0; count < 20; count += 1) await put(`q${count}`, 'quick')
  await expect.poll(() => runner.settled.filter(([text]) => text.startsWith('q')).length).toBe(20)
  expect(runner.carried.filter((text) => text.startsWith('d'))).toEqual(['d0 1'])
  expect(most.get('slow')).toBe(1)
  gates.shift()!()
  await expect.poll(() => gates.length).toBe(16)
  expect(most.get('slow')).toBe(16)
  held = false
  for (const go of gates.splice(0)) go()
  await expect.poll(() => runner.settled.filter(([text]) => text.startsWith('s')).length).toBe(20)
  expect(most.get('slow')).toBe(16)
})

test('lanes that went well and begin to hang together are kept to four each, and leave room', async () => {
  let hanging = false
  runner.act = async (load, attempt, signal) => (hanging && load.to !== 'good' ? hang(load, attempt, signal) : 'thanks')
  const lanes = Array.from({ length: 20 }, (_, index) => `lane ${index}`)
  await queue.start()
  for (const lane of [...lanes, 'good']) await put('first', lane)
  await settled(queue)
  expect(runner.settled.length).toBe(21)
  hanging = true
  const begun = (lane: string): number => runner.carried.filter((text) => text.startsWith(`${lane} `)).length
  for (const lane of lanes) {
    for (let count = 0; count < 20; count += 1) await put(`to ${lane.slice(5)}: ${count}`, lane)
  }
  await expect.poll(() => lanes.every((lane) => begun(`to ${lane.slice(5)}:`) >= 4)).toBe(true)
  await put('last', 'good')
  await expect.poll(() => runner.settled.some(([text]) => text === 'last')).toBe(true)
  const total = lanes.map((lane) => begun(`to ${lane.slice(5)}:`))
  expect(Math.max(...total)).toBe(16)
  expect(total.filter((count) => count === 4).length).toBeGreaterThan(10)
})

test('hundreds of lanes that hang leave room for those that do not', async () => {
  runner.act = async (load, attempt, signal) => (load.to.startsWith('dead') ? hang(load, attempt, signal) : 'thanks')
  await queue.start()
  await put('known', 'good')
  await settled(queue)
  expect(runner.settled.length).toBe(1)
  await database.transaction(async (tx) => {
    for (let count = 0; count < 400; count += 1) {
      await queue.enqueue(tx, { kind: 'test', lane: `dead ${count}`, load: { to: `dead ${count}`, text: 'x' } })
    }
  })
  await expect.poll(() => runner.carried.length).toBe(65)
  for (let count = 0; count < 10; count += 1) await put(`good ${count}`, 'good')
  await expect.poll(() => runner.settled.length).toBe(11)
})

test('lanes that answer well but slowly share the room of those that fail: prompt ones find theirs', async () => {
  const { gates, wait } = gated()
  runner.act = async ({ to }, _attempt, signal) => (to === 'prompt' ? 'thanks' : wait(signal))
  await queue.start()
  await put('known', 'prompt')
  await settled(queue)
  expect(runner.settled.length).toBe(1)
  for (let count = 0; count < 100; count += 1) await put('first', `slow ${count}`)
  await expect
    .poll(() => {
      clock.advance(10 * second)
      for (const go of gates.splice(0)) go()
      return runner.settled.length
    })
    .toBe(101)
  await database.transaction(async (tx) => {
    for (let count = 0; count < 400; count += 1) {
      const to = `slow ${count % 100}`
      await queue.enqueue(tx, { kind: 'test', lane: to, load: { to, text: 'next' } })
    }
  })
  await expect.poll(() => gates.length).toBe(96)
  await put('now', 'prompt')
  await expect.poll(() => runner.settled.at(-1)).toEqual(['now', 'done', 'thanks'])
  expect(gates.length).toBe(96)
})

test('a new lane finds room however much the known ones have to do', async () => {
  runner.act = async (load, attempt, signal) => (load.text === 'busy' ? hang(load, attempt, signal) : 'thanks')
  await queue.start()
  for (let count = 0; count < 70; count += 1) await put('first', `busy ${count}`)
  await settled(queue)
  expect(runner.settled.length).toBe(70)
  await database.transaction(async (tx) => {
    for (let count = 0; count < 700; count += 1) {
      const to = `busy ${count % 70}`
      await queue.enqueue(tx, { kind: 'test', lane: to, load: { to, text: 'busy' } })
    }
  })
  await expect.poll(() => runner.carried.length).toBeGreaterThan(300)
  await put('hello', 'new')
  await expect.poll(() => runner.settled.at(-1)).toEqual(['hello', 'done', 'thanks'])
})

test('lanes known to hang, however many, delay neither a new one nor one that failed once', async () => {
  const hanging = new Map<string, () => void>()
  let once = true
  runner.act = async ({ to }, _attempt, signal) => {
    if (to === 'hiccup' && once) throw new TemporaryFailure('one moment')
    if (!to.startsWith('dead')) return 'thanks'
    return new Promise((_resolve, reject) => {
      hanging.set(to, () => reject(new TemporaryFailure('too late', hour)))
      signal.addEventListener('abort', () => reject(new Error('cut')))
    })
  }
  await queue.start()
  const hiccup = await put('first', 'hiccup')
  await settled(queue)
  expect(runner.settled.length).toBe(1)
  for (let count = 0; count < 200; count += 1) await put('x', `dead ${count}`)
  await expect
    .poll(() => {
      clock.advance(3 * second)
      for (const end of hanging.values()) end()
      return runner.settled.filter(([text]) => text === 'x').length
    })
    .toBe(200)
  hanging.clear()
  for (let count = 0; count < 200; count += 1) await put('y', `dead ${count}`)
  await expect.poll(() => hanging.size).toBeGreaterThanOrEqual(96)
  once = false
  await database.transaction((tx) => queue.retry(tx, hiccup))
  await put('hello', 'new')
  await expect.poll(() => runner.settled.filter(([, outcome]) => outcome === 'done').length).toBe(2)
  expect(hanging.size).toBe(96)
})

test('results that arrive together are written a few at a time: other writes come in between, and none is lost when some fail', async () => {
  const { gates, wait } = gated()
  runner.act = async (_load, _attempt, signal) => wait(signal)
  const written = new Map<unknown, number>()
  let other: Promise<unknown> | undefined
  let before: number | undefined
  let failures = 1
  const settle = runner.settle.bind(runner)
  runner.settle = async (tx, load, outcome, answer) => {
    written.set(tx, (written.get(tx) ?? 0) + 1)
    other ??= new Promise((resolve) => setImmediate(resolve)).then(() =>
      database.transaction(async () => {
        before = runner.settled.length
      }),
    )
    if (load.text === '20' && failures-- > 0) throw new Error('no room')
    await settle(tx, load, outcome, answer)
  }
  await queue.start()
  for (let count = 0; count < 64; count += 1) await put(`${count}`, `lane ${count}`)
  await expect.poll(() => gates.length).toBe(64)
  for (const go of gates) go()
  await settled(queue)
  await other
  expect(Math.max(...written.values())).toBe(16)
  expect(before).toBeLessThan(33)
  expect(new Set(runner.settled.map(([text]) => text)).size).toBe(64)
  expect(await database.all(sql`SELECT state, count(*) AS number FROM deliveries_queue GROUP BY state`)).toEqual([
    { state: 'done', number: 64 },
  ])
})

test('lanes take turns: who waits longest is next, however much the others have to do', async () => {
  const { gates, wait } = gated()
  runner.act = async ({ text }, _attempt, signal) => (text === 'much' ? wait(signal) : 'thanks')
  await queue.start()
  for (let count = 0; count < 70; count += 1) await put('first', `busy ${count}`)
  await put('first', 'late')
  await settled(queue)
  expect(runner.settled.length).toBe(71)
  await database.transaction(async (tx) => {
    for (let count = 0; count < 7000; count += 1) {
      const to = `busy ${count % 70}`
      await queue.enqueue(tx, { kind: 'test', lane: to, load: { to, text: 'much' } })
    }
  })
  await expect.poll(() => gates.length).toBeGreaterThanOrEqual(240)
  const full = gates.length
  clock.advance(1)
  await put('at last', 'late')
  clock.advance(1)
  // each that ends makes room for one: those that waited before come first, but none of them a second time
  for (const go of gates.splice(0, 120)) go()
  await expect.poll(() => runner.settled.some(([text]) => text === 'at last')).toBe(true)
  expect(gates.length).toBeLessThanOrEqual(full)
})

test('accounts take turns in one lane: another’s first is next, however much one has waiting', async () => {
  const { gates, wait } = gated()
  runner.act = async (_load, _attempt, signal) => wait(signal)
  for (let count = 0; count < 100; count += 1) await putFor('acct_flood', `flood ${count}`)
  await queue.start()
  await expect.poll(() => gates.length).toBe(1)
  await putFor('acct_other', 'one')
  await putFor('acct_other', 'two')
  // each that goes well lets more begin, of both by turn
  while (!runner.carried.includes('two 1')) {
    const begun = runner.carried.length
    for (const go of gates.splice(0)) go()
    await expect.poll(() => runner.carried.length).toBeGreaterThan(begun)
  }
  expect(runner.carried.slice(0, 2)).toContain('flood 0 1')
  const flood = (text: string): number =>
    runner.carried.slice(0, runner.carried.indexOf(text)).filter((one) => one.startsWith('flood')).length
  expect([flood('one 1') <= 9, flood('two 1') <= 17]).toEqual([true, true])
  runner.act = async () => 'thanks'
  for (const go of gates.splice(0)) go()
  await settled(queue)
  expect(runner.settled.length).toBe(102)
})

test('an account whose lanes all hang leaves room to the others', async () => {
  let hanging = 0
  runner.act = ({ text, to }, attempt, signal) => {
    if (text !== 'dead') return Promise.resolve('thanks')
    hanging += 1
    return hang({ text, to }, attempt, signal)
  }
  await queue.start()
  await database.transaction(async (tx) => {
    for (let count = 0; count < 300; count += 1) {
      const to = `dead ${count}`
      await queue.enqueue(tx, { kind: 'test', lane: to, account_id: 'acct_flood', load: { to, text: 'dead' } })
    }
  })
  await expect.poll(() => hanging).toBe(64)
  await putFor('acct_other', 'hello', 'elsewhere')
  await expect.poll(() => runner.settled).toEqual([['hello', 'done', 'thanks']])
  expect(hanging).toBe(64)
})

test('what one account has due in many lanes does not come before another’s', async () => {
  runner.act = async () => 'thanks'
  await database.transaction(async (tx) => {
    for (let count = 0; count < 500; count += 1) {
      const to = `lane ${count}`
      await queue.enqueue(tx, { kind: 'test', lane: to, account_id: 'acct_flood', load: { to, text: 'flood' } })
    }
  })
  clock.advance(1)
  await putFor('acct_other', 'hello', 'elsewhere')
  clock.advance(1)
  await queue.start()
  await settled(queue)
  expect(runner.settled.length).toBe(501)
  expect(runner.carried.indexOf('hello 1')).toBeLessThan(64)
})

test('what a former run had under way is tried again, under the same id', async () => {
  runner.act = hang
  await queue.start()
  const id = await put('a')
  await expect.poll(() => runner.carried).toEqual(['a 1'])
  // as after a crash: another run over what is on disk
  const running = await database.all(sql`SELECT * FROM deliveries_queue WHERE state = 'running'`)
  expect(running).toHaveLength(1)
  const former = queue
  runner = new Runner()
  queue = fresh()
  await queue.start()
  await settled(queue)
  expect(await look(id)).toMatchObject({
    state: 'done',
    attempts: [
      { number: 1, outcome: 'interrupted' },
      { number: 2, outcome: 'done' },
    ],
  })
  await former.stop()
})

test('what waits in a stopped account, to however many destinations, is not looked at for the others', async () => {
  const store = new QueueStore(database.run)
  for (const [kind, goesOn] of [
    ['mail', false],
    ['digest', true],
  ] as const)
    store.serve(kind, goesOn)
  const now = '2026-11-20T10:00:00.000Z'
  await database.transaction(async (tx) => {
    await tx.run(sql`INSERT INTO stopped_accounts (account_id, stopped_at) VALUES ('acct_b', ${now})`)
    await tx.run(
      sql`WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 1000)
        INSERT INTO delivery_lanes (kind, lane, account_id, due_at) SELECT 'mail', n, 'acct_b', ${now} FROM many`,
    )
  })
  const plans: string[] = []
  const reader: Reader = {
    engine: database.engine,
    all: (query) => database.all(query),
    async get<Row>(query: Sql) {
      plans.push(await plan(query))
      return database.get<Row>(query)
    },
  }
  expect(await store.nextDue(reader, new InFlight())).toBeUndefined()
  // one lane in which something waits, then those of that account by their kind, not all that are due in it
  expect(plans).toEqual([
    expect.stringContaining('USING COVERING INDEX lanes_due (sound=?)'),
    expect.stringContaining('USING INDEX lanes_by_account (account_id=? AND kind=?)'),
  ])
  const others = [
    { id: 'one', kind: 'digest', lane: 'there', account_id: 'acct_b', load: {} },
    { id: 'two', kind: 'mail', lane: 'there', account_id: 'acct_a', load: {} },
    { id: 'three', kind: 'mail', lane: 'there', account_id: 'acct_b', load: {} },
  ]
  await database.transaction((tx) => store.add(tx, others, now))
  expect(await store.nextDue(database, new InFlight())).toBe(now)
  const claims = await database.transaction((tx) => store.claim(tx, now, new InFlight()))
  expect(claims.map(({ id }) => id).toSorted()).toEqual(['one', 'two'])
})

test('stopping cuts off what hangs, and the next start tries that again without counting it', async () => {
  runner.act = hang
  await queue.start()
  const id = await put('a')
  await expect.poll(() => runner.carried).toEqual(['a 1'])
  await queue.stop()
  expect(await look(id)).toMatchObject({ state: 'waiting', attempts: [{ outcome: 'interrupted' }] })
  expect(await database.get(sql`SELECT tries FROM deliveries_queue`)).toEqual({ tries: 0 })
  await put('b')
  expect(runner.carried).toEqual(['a 1'])
  await database.close()
  database = await SqliteDatabase.open(file, quiet)
  runner = new Runner()
  queue = fresh()
  await queue.start()
  await settled(queue)
  expect(runner.settled.map(([text]) => text).toSorted()).toEqual(['a', 'b'])
})

test('a lane that is closed and silenced hears nothing more, and is cleared', async () => {
  runner.act = hang
  await queue.start()
  await put('under way')
  for (let count = 0; count < 200; count += 1) await put(`waiting ${count}`)
  await put('elsewhere', 'elsewhere')
  await expect.poll(() => runner.carried.length).toBe(2)
  await database.transaction((tx) => queue.closeLane(tx, { kind: 'test', lane: 'there', account_id: '' }))
  await queue.abortLane('test', 'there')
  await put('too late')
  queue.wake()
  await queue.clear()
  expect(runner.carried.length).toBe(2)
  expect(await database.all(sql`SELECT lane FROM deliveries_queue`)).toEqual([{ lane: 'elsewhere' }])
  expect(await database.all(raw(`SELECT count(*) AS n FROM ${allAttempts}`))).toEqual([{ n: 1 }])
  expect(await database.all(sql`SELECT lane FROM delivery_lanes`)).toEqual([{ lane: 'elsewhere' }])
})

test('what ended a month ago is forgotten', async () => {
  await queue.start()
  await put('old')
  await settled(queue)
  expect(runner.settled.length).toBe(1)
  clock.advance(31 * 24 * hour)
  await put('new')
  await settled(queue)
  expect(runner.settled.length).toBe(2)
  await queue.clear()
  expect(await database.all(sql`SELECT load FROM deliveries_queue`)).toEqual([{ load: '{"to":"there","text":"new"}' }])
})

test('what a clock that ran ahead has put off for years is tried once the clock is right', async () => {
  runner.act = async ({ text }) => {
    if (text === 'later') throw new TemporaryFailure('busy')
    return 'thanks'
  }
  clock.advance(4 * 365 * 24 * hour)
  await put('stranded')
  clock.advance(-4 * 365 * 24 * hour)
  await queue.start()
  const later = await put('later', 'elsewhere')
  await settled(queue)
  expect(await look(later, 'elsewhere')).toMatchObject({ state: 'waiting', due_at: '2026-11-20T10:05:05.000Z' })
  expect(runner.carried).toEqual(['later 1'])
  await queue.clear()
  await settled(queue)
  expect(runner.carried).toEqual(['later 1', 'stranded 1'])
  expect(await look(later, 'elsewhere')).toMatchObject({ state: 'waiting', due_at: '2026-11-20T10:05:05.000Z' })
})

test('lanes are repaired a few at a time: lost due times come back, and lanes without deliveries go', async () => {
  await queue.start()
  await database.transaction(async (tx) => {
    for (let number = 0; number < 1000; number += 1)
      await tx.run(sql`INSERT INTO delivery_lanes (kind, lane, account_id) VALUES ('test', ${`empty ${number}`}, 'a')`)
  })
  await put('done', 'empty 500')
  await settled(queue)
  await queue.stop()
  const lost = await putFor('b', 'lost', 'lost')
  await database.transaction((tx) => tx.run(sql`UPDATE delivery_lanes SET due_at = NULL`))
  queue = fresh()
  await queue.start()
  await settled(queue)
  expect(await look(lost, 'lost')).toMatchObject({ state: 'waiting' })
  const removed: number[] = []
  const lanes = async (): Promise<number> => (await database.get<{ n: number }>(sql`SELECT count(*) AS n FROM delivery_lanes`))!.n
  const transaction = database.transaction.bind(database)
  const watched = vi.spyOn(database, 'transaction').mockImplementation(async (work) => {
    const before = await lanes()
    const result = await transaction(work)
    removed.push(before - (await lanes()))
    return result
  })
  await queue.clear()
  watched.mockRestore()
  await settled(queue)
  expect(Math.max(...removed)).toBeLessThanOrEqual(64)
  expect(await look(lost, 'lost')).toMatchObject({ state: 'done' })
  // those that are left keep what is known of the destination
  expect(await database.all(sql`SELECT DISTINCT lane FROM delivery_lanes`)).toEqual([{ lane: 'empty 500' }, { lane: 'lost' }])
})

test('looking for what is due walks an index, however much is deferred', async () => {
  const lanes = sql`SELECT due_at FROM delivery_lanes WHERE sound = ${1} AND account_id = ${'a'} AND due_at IS NOT NULL
    ORDER BY due_at LIMIT 1`
  expect(await plan(lanes)).toMatch(/USING (?:COVERING )?INDEX lanes_due/)
  expect(await plan(lanes)).not.toContain('TEMP B-TREE')
  const rows = sql`SELECT seq, load FROM deliveries_queue WHERE kind = ${'x'} AND lane = ${'y'} AND account_id = ${'a'} AND state = 'waiting'
    AND due_at <= ${'z'} ORDER BY due_at, seq LIMIT ${4}`
  expect(await plan(rows)).toContain('USING INDEX deliveries_due')
  expect(await plan(rows)).not.toContain('TEMP B-TREE')
})

/** Has each lane deliver once, so that it is known and healthy. */
async function known(...lanes: string[]): Promise<void> {
  for (const lane of lanes) await putFor('acct_a', 'before', lane)
  await settled(queue)
  runner.carried.length = 0
  runner.settled.length = 0
}

const claimFor = (tx: Transaction, account_id: string, lanes: string[], text = 'new'): Promise<void> =>
  queue.enqueueClaiming(tx, { kind: 'test', account_id, deliveries: lanes.map((lane) => ({ lane, load: { to: lane, text } })) })
const states = (lane: string): Promise<unknown[]> =>
  database.all(sql`SELECT state, attempts, tries FROM deliveries_queue WHERE lane = ${lane} ORDER BY seq DESC LIMIT 1`)

test('a delivery to an idle lane is claimed in the transaction that enqueues it, and its first attempt is in its row', async () => {
  await queue.start()
  await known('a', 'b')
  const waiting = { state: 'waiting', attempts: 0, tries: 0 }
  const running = { state: 'running', attempts: 1, tries: 1 }
  await database.transaction(async (tx) => {
    await claimFor(tx, 'acct_a', ['a', 'b', 'a', 'unknown'])
    const added = await tx.all(
      sql`SELECT lane, state, attempts, tries FROM deliveries_queue WHERE state <> 'done' ORDER BY lane, state`,
    )
    expect(added).toEqual([
      { lane: 'a', ...running },
      { lane: 'a', ...waiting },
      { lane: 'b', ...running },
      { lane: 'unknown', ...waiting },
    ])
    expect(runner.carried).toEqual([])
  })
  await settled(queue)
  expect(runner.carried.toSorted()).toEqual(['new 1', 'new 1', 'new 1', 'new 1'])
  expect(await database.all(sql`SELECT * FROM delivery_attempts`)).toEqual([])
  const { id } = (await database.get<{ id: string }>(sql`SELECT id FROM deliveries_queue WHERE lane = 'b' ORDER BY seq DESC`))!
  expect(await look(id, 'b')).toMatchObject({
    state: 'done',
    attempts: [{ number: 1, started_at: expect.any(String), ended_at: expect.any(String), outcome: 'done', answer: 'thanks' }],
  })
})

test('one that is claimed as it is enqueued and fails for now is tried again by the list, with a row for each later attempt', async () => {
  await queue.start()
  await known('a')
  runner.act = async (_load, attempt) => {
    if (attempt < 3) throw new TemporaryFailure(`not now ${attempt}`)
    return 'thanks'
  }
  await database.transaction((tx) => claimFor(tx, 'acct_a', ['a']))
  for (const wait of [0, 5 * second, hour]) {
    clock.advance(wait)
    queue.wake()
    await settled(queue)
  }
  const { id } = (await database.get<{ id: string }>(sql`SELECT id FROM deliveries_queue ORDER BY seq DESC`))!
  expect((await look(id, 'a')).attempts).toMatchObject([
    { number: 1, outcome: 'deferred', answer: 'not now 1' },
    { number: 2, outcome: 'deferred', answer: 'not now 2' },
    { number: 3, outcome: 'done', answer: 'thanks' },
  ])
  expect(await database.all(sql`SELECT number FROM delivery_attempts ORDER BY number`)).toEqual([{ number: 2 }, { number: 3 }])
})

test('nothing is claimed as it is enqueued in a lane with work, in a closed lane, or for a stopped account', async () => {
  await queue.start()
  await known('busy', 'closed', 'stopped')
  runner.act = hang
  await putFor('acct_a', 'under way', 'busy')
  await expect.poll(() => runner.carried).toEqual(['under way 1'])
  await database.transaction((tx) => queue.closeLane(tx, { kind: 'test', lane: 'closed', account_id: 'acct_a' }))
  await database.transaction(async (tx) => {
    await tx.run(sql`INSERT INTO delivery_lanes (kind, lane, account_id, sound) VALUES ('test', 'stopped', 'acct_b', 1)`)
    await tx.run(sql`INSERT INTO stopped_accounts (account_id, stopped_at) VALUES ('acct_b', '2026')`)
    await claimFor(tx, 'acct_a', ['busy', 'closed'])
    await claimFor(tx, 'acct_b', ['stopped'])
    for (const lane of ['busy', 'closed', 'stopped'])
      expect(
        await tx.all(sql`SELECT state, attempts FROM deliveries_queue WHERE lane = ${lane} ORDER BY seq DESC LIMIT 1`),
      ).toEqual([{ state: 'waiting', attempts: 0 }])
  })
})

test('a transaction that is rolled back begins no attempt, and takes no capacity', async () => {
  await queue.start()
  const lanes = Array.from({ length: 40 }, (_, index) => `lane ${index}`)
  await known(...lanes)
  for (let time = 0; time < 20; time += 1) {
    const lost = database.transaction(async (tx) => {
      await claimFor(tx, 'acct_a', lanes, 'lost')
      throw new Error('no')
    })
    await expect(lost).rejects.toThrow('no')
  }
  await database.transaction((tx) => claimFor(tx, 'acct_a', lanes))
  await settled(queue)
  expect(runner.carried).toEqual(lanes.map(() => 'new 1'))
})

test('no more is claimed as it is enqueued than there is capacity for; the rest waits and follows', async () => {
  await queue.start()
  const lanes = Array.from({ length: 400 }, (_, index) => `lane ${index}`)
  await known(...lanes)
  const { gates, wait } = gated()
  runner.act = async (_load, _attempt, signal) => wait(signal)
  const running = async (): Promise<unknown[]> =>
    database.all(sql`SELECT count(*) AS n FROM deliveries_queue WHERE state = 'running'`)
  await database.transaction(async (tx) => {
    // a second call in the same transaction knows of the first
    await claimFor(tx, 'acct_a', lanes.slice(0, 200))
    await claimFor(tx, 'acct_a', lanes.slice(200))
    expect(await tx.all(sql`SELECT count(*) AS n FROM deliveries_queue WHERE state = 'running'`)).toEqual([{ n: 240 }])
  })
  await expect.poll(running).toEqual([{ n: 240 }])
  await expect.poll(() => gates.length).toBe(240)
  runner.act = async () => 'thanks'
  for (const go of gates) go()
  await settled(queue)
  expect(runner.carried).toHaveLength(400)
})

test('what a former run had claimed as it was enqueued is interrupted, and tried again under the same id', async () => {
  await queue.start()
  await known('a')
  runner.act = hang
  await database.transaction((tx) => claimFor(tx, 'acct_a', ['a']))
  await expect.poll(() => runner.carried).toEqual(['new 1'])
  expect(await states('a')).toEqual([{ state: 'running', attempts: 1, tries: 1 }])
  const former = queue
  runner = new Runner()
  queue = fresh()
  await queue.start()
  await settled(queue)
  expect(runner.carried).toEqual(['new 2'])
  const { id } = (await database.get<{ id: string }>(sql`SELECT id FROM deliveries_queue ORDER BY seq DESC`))!
  expect((await look(id, 'a')).attempts).toMatchObject([
    { number: 1, outcome: 'interrupted', answer: null },
    { number: 2, outcome: 'done' },
  ])
  await former.stop()
})

test('once a lane is silenced nothing is sent to it, even by a claim that was about to begin', async () => {
  await queue.start()
  await known('a')
  runner.act = hang
  const claimed = database.transaction((tx) => claimFor(tx, 'acct_a', ['a']))
  const closed = database
    .transaction((tx) => queue.closeLane(tx, { kind: 'test', lane: 'a', account_id: 'acct_a' }))
    .then(() => queue.abortLane('test', 'a'))
  await Promise.all([claimed, closed])
  expect(runner.carried).toEqual([])
  await settled(queue)
  expect(runner.carried).toEqual([])
})

test('claims of several transactions, one after the other or together, stay within the limit of their account', async () => {
  await queue.start()
  const lanes = Array.from({ length: 1200 }, (_, index) => `lane ${index}`)
  await known(...lanes)
  runner.act = hang
  for (let at = 0; at < 600; at += 100) await database.transaction((tx) => claimFor(tx, 'acct_a', lanes.slice(at, at + 100)))
  await Promise.all([600, 900].map((at) => database.transaction((tx) => claimFor(tx, 'acct_a', lanes.slice(at, at + 300)))))
  await expect.poll(() => runner.carried.length).toBe(240)
  expect(queue.claimable({ kind: 'test', account_id: 'acct_a' })).toEqual({ now: 0, share: 0 })
  // what one account leaves to the others
  expect(queue.claimable({ kind: 'test', account_id: 'acct_b' })).toEqual({ now: 60, share: 240 })
  await database.transaction(async (tx) => {
    for (let number = 0; number < 200; number += 1)
      await tx.run(
        sql`INSERT INTO delivery_lanes (kind, lane, account_id, sound) VALUES ('test', ${`other ${number}`}, 'acct_b', ${(number % 3) - 1})`,
      )
    await claimFor(
      tx,
      'acct_b',
      Array.from({ length: 200 }, (_, number) => `other ${number}`),
    )
  })
  // lanes of any health share what is free
  const running = sql`SELECT count(*) AS n FROM deliveries_queue WHERE state = 'running'`
  expect(await database.get(running)).toEqual({ n: 320 })
})

test('a claim that is committed as the queue stops is interrupted, and takes no place in the schedule', async () => {
  await queue.start()
  await known('a')
  await database.transaction((tx) => claimFor(tx, 'acct_a', ['a'])).then(() => queue.stop())
  expect(runner.carried).toEqual([])
  const last = sql`SELECT state, tries, first_outcome FROM deliveries_queue ORDER BY seq DESC LIMIT 1`
  expect(await database.get(last)).toEqual({ state: 'waiting', tries: 0, first_outcome: 'interrupted' })
})

test('a claim that is committed as the queue stops does not cut what has a moment to end', async () => {
  const slow = new Queue({ database, clock, log: quiet, metrics: new Metrics(), grace: 3000 })
  slow.add(runner)
  queue = slow
  await queue.start()
  await known('a', 'b')
  runner.act = async ({ to }, _attempt, signal) => {
    await new Promise((resolve) => setTimeout(resolve, to === 'b' ? 200 : 0))
    if (signal.aborted) throw new Error('cut')
    return 'thanks'
  }
  await putFor('acct_a', 'long', 'b')
  await expect.poll(() => runner.carried).toEqual(['long 1'])
  await database.transaction((tx) => claimFor(tx, 'acct_a', ['a'])).then(() => queue.stop())
  await expect.poll(() => runner.settled).toEqual([['long', 'done', 'thanks']])
})

test('a kind whose courier is told when an attempt begins is not claimed as it is enqueued', async () => {
  Object.assign(runner, { begin: async () => {} })
  await expect(database.transaction((tx) => claimFor(tx, 'acct_a', ['a']))).rejects.toThrow(
    'Deliveries of kind test must be enqueued.',
  )
})

test('a result whose log line fails is written once, and the next are written too', async () => {
  let wrong = true
  runner.finished = () => {
    if (!wrong) return
    wrong = false
    throw new Error('no log')
  }
  await queue.start()
  const first = await put('one')
  await settled(queue)
  const next = await put('two')
  await settled(queue)
  expect([(await look(first)).state, (await look(next)).state]).toEqual(['done', 'done'])
  expect(runner.settled).toEqual([
    ['one', 'done', 'thanks'],
    ['two', 'done', 'thanks'],
  ])
})
