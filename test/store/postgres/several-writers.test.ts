import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { Plan } from '../../../src/accounts/plan.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { type Event, eventType } from '../../../src/events/model.ts'
import { EventLog } from '../../../src/events/log.ts'
import { sql } from '../../../src/store/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import { child } from '../../support/child.ts'
import { killsOr } from '../../support/kills.ts'
import { limitless } from '../../support/limitless.ts'
import { quiet } from '../opened.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
const noteOf = ({ data }: Event): string => (data as { note: string }).note

test('of the events of boxes that write at once, and are killed, none is lost, skipped or out of order for who reads along', async () => {
  const target = await emptyDatabase(postgres(), 'writers')
  await preparePostgres(target, false)
  const { database } = await opened(target, { shared: true, heartbeat })
  const events = new EventLog(database, systemClock)
  const heard: Event[] = []
  events.subscribe((event) => heard.push(event))
  await events.start(quiet)
  onTestFinished(() => events.stop())
  const followed: string[] = []
  const reading = new AbortController()
  const reader = (async () => {
    for (let seq = 0; !reading.signal.aborted; await sleep(5)) {
      const batch = await events.headers(seq, 50, sql`1 = 1`)
      followed.push(...batch.map(({ id }) => id))
      seq = batch.at(-1)?.seq ?? seq
    }
  })()
  const acknowledged: string[] = []
  for (let kill = 0; kill < killsOr(3); kill += 1) {
    const writers = [0, 1].map((box) => child('store/postgres/children/append.ts', [postgres().url('writers'), `${kill}.${box}`]))
    await Promise.all(writers.map((writer) => writer.until(100 + Math.floor(Math.random() * 50))))
    // the second goes on while the first is dead
    await writers[0]!.kill()
    const more = writers[1]!.lines().length + 20
    await writers[1]!.until(more)
    await writers[1]!.kill()
    for (const writer of writers) acknowledged.push(...writer.lines().flatMap((line) => line.split(' ')))
  }
  // killed before they gave their events positions
  await expect.poll(() => database.get(sql`SELECT count(*) AS n FROM events WHERE seq < 0`)).toEqual({ n: 0 })
  const all = await database.all<{ seq: number; id: string; data: string }>(sql`SELECT seq, id, data FROM events ORDER BY seq`)
  await expect.poll(() => heard.length).toBe(all.length)
  await expect.poll(() => followed.length).toBe(all.length)
  reading.abort()
  await reader
  expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1))
  expect(heard.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
  expect(heard.map(({ seq }) => seq)).toEqual(all.map(({ seq }) => seq))
  expect(followed).toEqual(all.map(({ id }) => id))
  const notes = heard.map(noteOf)
  expect(notes).not.toContain('rolled back')
  expect(new Set(notes).size).toBe(notes.length)
  const there = new Set(notes)
  expect(acknowledged.filter((note) => !there.has(note))).toEqual([])
  expect(acknowledged.length).toBeGreaterThan(500)
  // what one writer wrote later is later
  const places = new Map(notes.map((note, index) => [note, index]))
  for (const of of Map.groupBy(acknowledged, (note) => note.slice(0, note.lastIndexOf('.'))).values())
    expect(of.map((note) => places.get(note)!)).toEqual(of.map((note) => places.get(note)!).toSorted((one, other) => one - other))
})

test('an event has its position, and is heard, once the call that wrote it returns', async () => {
  const target = await emptyDatabase(postgres(), 'positions')
  await preparePostgres(target, false)
  const { database: one } = await opened(target, { shared: true, heartbeat })
  const { database: two } = await opened(target, { shared: true, heartbeat })
  expect([one.placesEvents, two.placesEvents]).toEqual([true, true])
  const rows = sql`SELECT seq FROM events ORDER BY seq`
  for (const [index, database] of [one, two, one].entries()) {
    await database.transaction((tx) =>
      tx.run(
        sql`INSERT INTO events (seq, id, type, account_id, created_at, data)
          VALUES (-nextval(pg_get_serial_sequence('events', 'seq')), ${`evt_${index}`}, 'test', 'acct_1', '', '{}')`,
      ),
    )
    expect(await database.all(rows)).toEqual(Array.from({ length: index + 1 }, (_, at) => ({ seq: at + 1 })))
  }
})

test('an event that is hidden before it has its position stays hidden', async () => {
  const target = await emptyDatabase(postgres(), 'hidden')
  await preparePostgres(target, false)
  const { database } = await opened(target, { shared: true, heartbeat })
  const events = new EventLog(database, systemClock)
  const type = eventType('test.written', [], 'a test', z.object({ id: z.string() }))
  const event = { account_id: 'acct_1', identity_id: null, data: { id: 'email_1' } }
  const { id } = await database.transaction(async (tx) => {
    const appended = await events.append(tx, type, event)
    await events.hide(tx, 'email_1')
    return appended
  })
  expect(await events.find(id)).toMatchObject({ seq: 1, data: { id: 'email_1', deleted: true } })
  await database.transaction((tx) => events.reveal(tx, 'email_1'))
  expect((await events.find(id))!.data).toEqual({ id: 'email_1' })
})

test('what a box has locked when it is cut off is free for others before its run has ended', { timeout: 20_000 }, async () => {
  const target = await emptyDatabase(postgres(), 'locked')
  await preparePostgres(target, false)
  await postgres().run('locked', 'CREATE TABLE counter (count INTEGER NOT NULL)', 'INSERT INTO counter VALUES (0)')
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const options = { shared: true, timeout: 500 }
  const [cut, other] = [await opened({ ...target, port: proxy.port }, options), await opened(target, options)]
  const add = sql`UPDATE counter SET count = count + 1`
  const ended = cut.database
    .transaction(async (tx) => {
      await tx.run(add)
      proxy.block()
      await tx.run(add)
    })
    .catch((error: { code?: string }) => error.code)
  await expect
    .poll(() => postgres().run('locked', "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"))
    .toHaveLength(1)
  await other.database.transaction((tx) => tx.run(add))
  expect(await other.database.all(sql`SELECT count FROM counter`)).toEqual([{ count: 1 }])
  proxy.turnTo(1)
  expect(await ended).toBe('storage_unavailable')
})

test('two boxes that write the same row all the time both get their turns', async () => {
  const target = await emptyDatabase(postgres(), 'turns')
  await preparePostgres(target, false)
  const { database: one } = await opened(target, { shared: true, heartbeat })
  const { database: two } = await opened(target, { shared: true, heartbeat })
  await one.transaction((tx) =>
    tx.run(sql`INSERT INTO plan_use (account_id, what, period, used) VALUES ('acc_1', 'storage_bytes', '', 0)`),
  )
  const [times, longest] = [300, [] as number[]]
  await Promise.all(
    [one, two].map(async (database) => {
      for (let time = 0; time < times; time += 1) {
        let runs = 0
        await database.transaction(async (tx) => {
          runs += 1
          const row = await tx.get<{ used: number }>(sql`SELECT used FROM plan_use WHERE account_id = 'acc_1'`)
          await sleep(5)
          await tx.run(sql`UPDATE plan_use SET used = ${row!.used + 1} WHERE account_id = 'acc_1'`)
        })
        longest.push(runs)
      }
    }),
  )
  expect(await one.get(sql`SELECT used FROM plan_use`)).toEqual({ used: 2 * times })
  // none waits until the other is done
  expect(Math.max(...longest)).toBeLessThan(4)
})

test('what two boxes add to the use of one account at once is counted, and neither runs again for the other', async () => {
  const target = await emptyDatabase(postgres(), 'added')
  await preparePostgres(target, false)
  // two of them may have chosen the same shard
  const boxes = await Promise.all([1, 2, 3].map(async () => (await opened(target, { shared: true, heartbeat })).database))
  const [times, runs] = [100, [] as number[]]
  await Promise.all(
    boxes.map(async (database, index) => {
      const plan = limitless(database, systemClock)
      for (let time = 0; time < times; time += 1) {
        runs[index] ??= 0
        await database.transaction(async (tx) => {
          runs[index]! += 1
          await plan.add(tx, 'acc_1', 'storage_bytes', 10)
          await sleep(2)
          await plan.add(tx, 'acc_1', 'storage_bytes', -3)
        })
      }
    }),
  )
  expect(runs.toSorted((one, other) => one - other)[0]).toBe(times)
  const plan = new Plan({ database: boxes[0]!, clock: systemClock, limits: { storage_bytes: 10_000 }, limitsOf: () => undefined })
  expect(await plan.available(boxes[0]!, 'acc_1')).toBe(10_000 - boxes.length * times * 7)
  await expect(plan.require(boxes[1]!, 'acc_1', 'storage_bytes', 7901)).rejects.toMatchObject({ code: 'plan_limit_reached' })
})
