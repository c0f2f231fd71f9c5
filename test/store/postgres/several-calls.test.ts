import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import { type Attempt, Idempotency } from '../../../src/http/idempotency.ts'
import { sql } from '../../../src/store/database.ts'
import type { PostgresDatabase } from '../../../src/store/postgres/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { toySeal } from '../../http/toy-box.ts'
import { callerOf } from '../../support/caller.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `calls_${(count += 1)}`)
  await preparePostgres(target, false)
  await postgres().run(target.database, 'CREATE TABLE done (box TEXT NOT NULL)')
})

interface Box {
  database: PostgresDatabase
  /** Begins the same call. */
  begin: () => ReturnType<Idempotency['begin']>
  /** Does its work, which writes a row. */
  work: (attempt: Attempt) => Promise<unknown>
}

async function started(name: string, at = target): Promise<Box> {
  const { database } = await opened(at, { shared: true, heartbeat })
  const storage = { available: async () => Infinity, add: async () => undefined }
  const idempotency = new Idempotency({ database, seal: toySeal(), clock: systemClock, storage })
  const caller = callerOf('acct_1', { key_id: 'key_1' })
  const call = { key: 'once', caller, method: 'POST', path: '/v1/toys', search: '', body: Buffer.from('{}') }
  return {
    database,
    begin: () => idempotency.begin({ ...call, identity_id: null, secret: false }),
    work: (attempt) => attempt.run(() => database.transaction((tx) => tx.run(sql`INSERT INTO done (box) VALUES (${name})`))),
  }
}

const done = (): Promise<Record<string, unknown>[]> => postgres().run(target.database, 'SELECT box FROM done ORDER BY box')
const answer = { status: 201, location: null, body: '{}', identity_id: null, resource_id: null, memo: null }

test('a call is in progress at each box while one handles it, and has its answer at each afterwards', async () => {
  const [one, two] = [await started('one'), await started('two')]
  const attempt = (await one.begin()) as Attempt
  await expect(two.begin()).rejects.toMatchObject({ code: 'idempotency_in_flight' })
  await one.work(attempt)
  await expect(two.begin()).rejects.toMatchObject({ code: 'idempotency_in_flight' })
  await attempt.keep(answer)
  expect(await two.begin()).toEqual({ status: 201, location: null, body: '{}' })
  expect(await done()).toEqual([{ box: 'one' }])
})

test('of boxes that are called at once, one does it', async () => {
  const boxes = await Promise.all(['one', 'two', 'three'].map((name) => started(name)))
  const begun = await Promise.allSettled(boxes.flatMap((box) => [box.begin(), box.begin()]))
  expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('a call that a box never began before it was cut off is done by another, and not by the first as well', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const [cut, other] = [await started('cut', { ...target, port: proxy.port }), await started('other')]
  const late = (await cut.begin()) as Attempt
  proxy.block()
  let attempt: Attempt | undefined
  await expect.poll(async () => (attempt = (await other.begin().catch(() => undefined)) as Attempt | undefined)).toBeDefined()
  proxy.unblock()
  await expect.poll(() => cut.database.run.alive).toBe(true)
  await expect(cut.work(late)).rejects.toMatchObject({ code: 'idempotency_in_flight' })
  await late.keep({ ...answer, body: '{"wrong":true}' })
  await other.work(attempt!)
  await attempt!.keep(answer)
  expect(await done()).toEqual([{ box: 'other' }])
  expect(await cut.begin()).toMatchObject({ body: '{}' })
})

test('a call that a box had begun before it was cut off is interrupted', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const [cut, other] = [await started('cut', { ...target, port: proxy.port }), await started('other')]
  await cut.work((await cut.begin()) as Attempt)
  proxy.block()
  const code = (): Promise<unknown> =>
    other.begin().then(
      () => undefined,
      (error: { code?: string }) => error.code,
    )
  expect(await code()).toBe('idempotency_in_flight')
  await expect.poll(code).toBe('idempotency_interrupted')
  proxy.unblock()
  expect(await done()).toEqual([{ box: 'cut' }])
})

test('a call whose end the server did not confirm is in progress no longer than the server is away', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const [cut, other] = [await started('cut', { ...target, port: proxy.port }), await started('other')]
  const attempt = (await cut.begin()) as Attempt
  proxy.cutAt('COMMIT', 'before')
  await expect(attempt.release()).rejects.toMatchObject({ code: 'storage_unsure' })
  // it has not begun: the next call does it
  let next: Attempt | undefined
  await expect.poll(async () => (next = (await other.begin().catch(() => undefined)) as Attempt | undefined)).toBeDefined()
  await other.work(next!)
  await next!.keep(answer)
  expect(await cut.begin()).toMatchObject({ status: 201 })
  expect(await done()).toEqual([{ box: 'other' }])
})

test('a call that has begun, and whose answer the server did not confirm, is interrupted', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const [cut, other] = [await started('cut', { ...target, port: proxy.port }), await started('other')]
  const attempt = (await cut.begin()) as Attempt
  await cut.work(attempt)
  proxy.cutAt('COMMIT', 'before')
  await expect(attempt.keep(answer)).rejects.toMatchObject({ code: 'storage_unsure' })
  await expect.poll(() => other.begin().catch((error: { code?: string }) => error.code)).toBe('idempotency_interrupted')
})

test('a call that was noted, without an answer of the server to it, is done by the next one', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const [cut, other] = [await started('cut', { ...target, port: proxy.port }), await started('other')]
  proxy.cutAt('COMMIT', 'after')
  await expect(cut.begin()).rejects.toMatchObject({ code: 'storage_unsure' })
  let next: Attempt | undefined
  await expect.poll(async () => (next = (await other.begin().catch(() => undefined)) as Attempt | undefined)).toBeDefined()
  await other.work(next!)
  expect(await done()).toEqual([{ box: 'other' }])
})
