import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
const heartbeat = { beat: 100, lost: 2000, ended: 4000 }
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `heartbeat_${(count += 1)}`)
  await preparePostgres(target, false)
})

const registered = async (): Promise<unknown[]> =>
  (await postgres().run(target.database, 'SELECT run_id FROM boxes ORDER BY run_id')).map((row) => row['run_id'])

test('a box is registered while it runs, and others hear when it has stopped', async () => {
  const { database: one } = await opened(target, { shared: true, heartbeat })
  const { database: two } = await opened(target, { shared: true, heartbeat })
  expect(await registered()).toEqual([one.run.id, two.run.id].toSorted())
  const ended = vi.fn<() => void>()
  two.run.onEnded(ended)
  await one.close()
  await expect.poll(() => ended.mock.calls.length).toBe(1)
  expect(await registered()).toEqual([two.run.id])
  expect(two.run.alive).toBe(true)
})

test('the former run of a data directory has ended at once, one of another when it was not seen for a while', async () => {
  const now = Date.now()
  await postgres().run(
    target.database,
    `INSERT INTO boxes (run_id, directory, seen_at) VALUES ('same', 'here', ${now}), ('other', 'there', ${now})`,
  )
  const { database } = await opened(target, { directory: 'here', heartbeat })
  expect(await registered()).toEqual([database.run.id, 'other'].toSorted())
  await expect.poll(registered).toEqual([database.run.id])
})

test('a box that runs again after its machine was restarted is not named among those that were lost', async () => {
  await postgres().run(
    target.database,
    `INSERT INTO boxes (run_id, directory, name, seen_at) VALUES ('former', 'before the restart', 'one', 1), ('other', 'there', 'two', 1)`,
  )
  const { database } = await opened(target, { shared: true, directory: 'after the restart', name: 'one', heartbeat })
  await expect.poll(registered).toEqual([database.run.id])
  expect(await postgres().run(target.database, 'SELECT name FROM lost_boxes')).toEqual([{ name: 'two' }])
})

test('a box that cannot reach the database stops before others take it for ended, and is another run afterwards', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const { database: one, logged } = await opened({ ...target, port: proxy.port }, { shared: true, heartbeat })
  const { database: two } = await opened(target, { shared: true, heartbeat })
  const former = one.run.id
  const order: string[] = []
  one.run.onLost(() => order.push(one.run.alive ? 'lost, and alive' : 'lost'))
  two.run.onEnded(() => order.push('ended'))
  proxy.block()
  await expect.poll(() => order).toEqual(['lost', 'ended'])
  expect(await registered()).toEqual([two.run.id])
  proxy.unblock()
  await expect.poll(() => one.run.alive).toBe(true)
  expect(one.run.id).not.toBe(former)
  expect(await registered()).toEqual([one.run.id, two.run.id].toSorted())
  expect(logged.join('')).toContain('deliveries and jobs under way are stopped')
})

test('a box that reaches the database again in time stays the same run', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const patient = { ...heartbeat, ended: 60_000 }
  const { database: one } = await opened({ ...target, port: proxy.port }, { shared: true, heartbeat: patient })
  const { database: two } = await opened(target, { shared: true, heartbeat: patient })
  const [lost, again, ended] = [vi.fn<() => void>(), vi.fn<() => void>(), vi.fn<() => void>()]
  one.run.onLost(lost)
  one.run.onEnded(again)
  two.run.onEnded(ended)
  const { id } = one.run
  proxy.block()
  await expect.poll(() => lost.mock.calls.length).toBe(1)
  expect(again).not.toHaveBeenCalled()
  proxy.unblock()
  await expect.poll(() => again.mock.calls.length).toBe(1)
  expect([one.run.id, one.run.alive]).toEqual([id, true])
  expect(ended).not.toHaveBeenCalled()
})
