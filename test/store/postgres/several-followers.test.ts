import { beforeEach, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { systemClock } from '../../../src/core/clock.ts'
import { Schedule } from '../../../src/core/cron.ts'
import { createLog } from '../../../src/core/log.ts'
import { Metrics } from '../../../src/core/metrics.ts'
import { EventLog } from '../../../src/events/log.ts'
import { eventType } from '../../../src/events/model.ts'
import { sql } from '../../../src/store/database.ts'
import type { PostgresDatabase } from '../../../src/store/postgres/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { quiet } from '../opened.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
const type = eventType('test.written', [], 'a test', z.object({}))
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `followers_${(count += 1)}`)
  await preparePostgres(target, false)
  await postgres().run(target.database, 'CREATE TABLE read (event_id TEXT NOT NULL, box TEXT NOT NULL)')
})

interface Box {
  database: PostgresDatabase
  events: EventLog
  logged: string[]
  append: () => Promise<string>
  /** Ends it, as a box that is stopped. */
  end: () => Promise<void>
}

async function started(name: string, at = target): Promise<Box> {
  const { database } = await opened(at, { shared: true, heartbeat })
  const logged: string[] = []
  const log = createLog('info', { write: (line: string) => void logged.push(line) })
  const events = new EventLog(database, systemClock)
  await events.start(log)
  const stop = events.follow(
    'test',
    async (tx, batch) => {
      for (const { id } of batch) await tx.run(sql`INSERT INTO read (event_id, box) VALUES (${id}, ${name})`)
    },
    log,
  )
  const end = async (): Promise<void> => {
    await stop()
    await events.stop()
    await database.close()
  }
  onTestFinished(end)
  const event = { account_id: 'acct_1', identity_id: null, data: {} }
  const append = async (): Promise<string> => (await database.transaction((tx) => events.append(tx, type, event))).id
  return { database, events, logged, append, end }
}

const read = async (): Promise<string[]> =>
  (await postgres().run(target.database, 'SELECT event_id FROM read')).map((row) => String(row['event_id']))
const readers = async (): Promise<unknown[]> =>
  (await postgres().run(target.database, 'SELECT DISTINCT box FROM read ORDER BY box')).map((row) => row['box'])

test('one of several boxes follows the log for all; when it has stopped, another goes on where it was', async () => {
  const [one, two] = [await started('one'), await started('two')]
  const written: string[] = []
  // the bookmark begins at the end of the log
  await expect.poll(() => postgres().run(target.database, 'SELECT 1 FROM bookmarks')).toHaveLength(1)
  for (let time = 0; time < 10; time += 1) written.push(await one.append(), await two.append())
  await expect.poll(read).toEqual(written)
  expect(await readers()).toEqual(['one'])
  await one.end()
  for (let time = 0; time < 10; time += 1) written.push(await two.append())
  await expect.poll(read).toEqual(written)
  expect(await readers()).toEqual(['one', 'two'])
  expect([...one.logged, ...two.logged].join('')).not.toContain('follower of the event log failed')
})

test('when the box that follows the log is cut off, another goes on, and no event is read twice', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const cut = await started('cut', { ...target, port: proxy.port })
  await expect.poll(() => postgres().run(target.database, 'SELECT 1 FROM bookmarks')).toHaveLength(1)
  const other = await started('other')
  const written = [await other.append()]
  await expect.poll(read).toEqual(written)
  expect(await readers()).toEqual(['cut'])
  proxy.block()
  written.push(await other.append(), await other.append())
  await expect.poll(read).toEqual(written)
  proxy.unblock()
  await expect.poll(() => cut.database.run.alive).toBe(true)
  written.push(await other.append())
  await expect
    .poll(() =>
      cut.append().then(
        (id) => written.push(id),
        () => 0,
      ),
    )
    .toBeGreaterThan(0)
  await expect.poll(read).toEqual(written)
  expect(await readers()).toEqual(['cut', 'other'])
})

test('a scheduled job is run by one of several boxes, one about its own memory or files by each', async () => {
  const boxes = [await opened(target, { shared: true, heartbeat }), await opened(target, { shared: true, heartbeat })]
  const runs: string[] = []
  const schedules = boxes.map(({ database }, box) => {
    const schedule = new Schedule(quiet, systemClock, new Metrics(), {}, (job) => database.run.leads(job))
    schedule.add({ name: 'one', schedule: '* * * * * *', run: async () => void runs.push(`one ${box}`) })
    schedule.add({ name: 'each', schedule: '* * * * * *', everywhere: true, run: async () => void runs.push(`each ${box}`) })
    return schedule
  })
  onTestFinished(async () => void (await Promise.all(schedules.map((schedule) => schedule.stop()))))
  const of = (job: string): string[] => [...new Set(runs.filter((run) => run.startsWith(job)))].toSorted()
  await expect.poll(() => runs.filter((run) => run.startsWith('one')).length).toBeGreaterThan(2)
  await expect.poll(() => of('each')).toEqual(['each 0', 'each 1'])
  expect(of('one')).toHaveLength(1)
  const leader = Number(of('one')[0]!.slice(4))
  await schedules[leader]!.stop()
  await boxes[leader]!.database.close()
  await expect.poll(() => of('one')).toHaveLength(2)
})
