import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { Fault } from '../../../src/core/fault.ts'
import { sql } from '../../../src/store/database.ts'
import { knownPostgresVersion, preparePostgres } from '../../../src/store/postgres/prepare.ts'
import { folder } from '../../support/folder.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  const name = `engine_${(count += 1)}`
  target = await emptyDatabase(postgres(), name)
  await preparePostgres(target, false)
  await postgres().run(name, 'CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT, b BYTEA)')
})

test('rows are as with SQLite: numbers, 0 and 1, bytes, any text', async () => {
  const { database } = await opened(target)
  const texts = ['a?b', "it's", 'a\0b', '\uFDD0', '\uFDD00', '\uFDD01\0', '', '\u{1F44D}', 'e\u0301']
  const bytes = new Uint8Array([0, 1, 255])
  await database.transaction(async (tx) => {
    for (const [id, v] of texts.entries()) await tx.run(sql`INSERT INTO t (id, v, b) VALUES (${id}, ${v}, ${bytes})`)
  })
  const rows = await database.all<{ v: string; b: Uint8Array }>(sql`SELECT v, b FROM t ORDER BY id`)
  expect(rows.map(({ v }) => v)).toEqual(texts)
  expect(rows[0]!.b).toEqual(bytes)
  expect(rows[0]!.b.constructor).toBe(Uint8Array)
  expect(
    await database.get(sql`SELECT count(*) AS n, sum(id) AS s, id = 1 AS one, '?' AS q FROM t WHERE v = ${'a\0b'} GROUP BY id`),
  ).toEqual({
    n: 1,
    s: 2,
    one: 0,
    q: '?',
  })
  expect(await database.slow(sql`SELECT id FROM t WHERE v = ${'\uFDD0'}`, 5000)).toEqual([{ id: 3 }])
  expect(await database.get(sql`SELECT 1 AS one FROM t WHERE id = ${-1}`)).toBeUndefined()
})

test('JSON with U+0000 is read and changed as with SQLite', async () => {
  const { database } = await opened(target)
  const document = JSON.stringify({ a: 'x\0y', b: '\\u0000', list: ['\0'] })
  const [row] = await database.all<Record<string, string>>(
    sql`SELECT json_extract(${document}, '$.a') AS a, json_extract(${document}, '$.b') AS b, json_remove(${document}, '$.list') AS rest,
      (SELECT min(value) FROM json_each(${JSON.stringify(['\0'])})) AS listed`,
  )
  expect(row).toMatchObject({ a: 'x\0y', b: '\\u0000', listed: '\0' })
  expect(JSON.parse(row!['rest']!)).toEqual({ a: 'x\0y', b: '\\u0000' })
})

test('transactions that run at once are as if one ran after the other, and work runs again after a conflict', async () => {
  const { database } = await opened(target, { writers: 4 })
  await database.transaction((tx) => tx.run(sql`INSERT INTO t (id, v) VALUES (1, '0')`))
  let runs = 0
  let heard = 0
  const add = (): Promise<void> =>
    database.transaction(async (tx) => {
      runs += 1
      tx.afterCommit(() => (heard += 1))
      const { v } = (await tx.get<{ v: string }>(sql`SELECT v FROM t WHERE id = 1`))!
      await tx.run(sql`UPDATE t SET v = ${String(Number(v) + 1)} WHERE id = 1`)
    })
  await Promise.all(Array.from({ length: 40 }, add))
  expect(await database.get(sql`SELECT v FROM t`)).toEqual({ v: '40' })
  expect(runs).toBeGreaterThan(40)
  await expect.poll(() => heard).toBe(40)
})

test('work that throws is rolled back, also when it has caught the error of a statement', async () => {
  const { database } = await opened(target)
  const insert = sql`INSERT INTO t (id) VALUES (1)`
  await expect(
    database.transaction(async (tx) => {
      await tx.run(insert)
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  await expect(
    database.transaction(async (tx) => {
      await tx.run(insert)
      await tx.run(insert).catch(() => undefined)
    }),
  ).rejects.toThrow(/duplicate key/)
  expect(await database.all(sql`SELECT id FROM t`)).toEqual([])
})

test('a transaction inside another is refused, work that does not settle is aborted, and its transaction is used no more', async () => {
  const { database } = await opened(target, { timeout: 200 })
  await expect(database.transaction(async () => database.transaction(async () => 1))).rejects.toThrow(
    /inside the work of another/,
  )
  let later: (() => Promise<unknown>) | undefined
  await expect(
    database.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO t (id) VALUES (1)`)
      later = () => tx.run(sql`INSERT INTO t (id) VALUES (2)`)
      await new Promise(() => {})
    }),
  ).rejects.toThrow(/did not settle within 200 ms/)
  await expect(later!()).rejects.toThrow('A transaction was used after its work had ended.')
  expect(await database.all(sql`SELECT id FROM t`)).toEqual([])
  // a statement that takes longer than that is no such work
  await database.transaction((tx) => tx.all(sql`SELECT pg_sleep(0.5)`))
})

test('a mark is written with the first transaction that commits', async () => {
  const { database } = await opened(target)
  await database.marking(
    (tx) => tx.run(sql`INSERT INTO t (id, v) VALUES (1, 'mark')`),
    async () => {
      await database.transaction(() => Promise.reject(new Error('first'))).catch(() => undefined)
      await database.transaction((tx) => tx.run(sql`INSERT INTO t (id) VALUES (2)`))
      await database.transaction((tx) => tx.run(sql`INSERT INTO t (id) VALUES (3)`))
    },
  )
  expect(await database.all(sql`SELECT id, v FROM t ORDER BY id`)).toEqual([
    { id: 1, v: 'mark' },
    { id: 2, v: null },
    { id: 3, v: null },
  ])
})

test('a slow read ends at its deadline, and the next one is answered', async () => {
  const { database } = await opened(target)
  await expect(database.slow(sql`SELECT pg_sleep(20)`, 300)).rejects.toMatchObject({ code: 'too_slow' })
  expect(await database.slow(sql`SELECT 1 AS one`, 2000)).toEqual([{ one: 1 }])
  await expect(database.slow(sql`DELETE FROM t`, 2000)).rejects.toThrow('not available')
})

test.each(['before', 'after'] as const)(
  'a connection lost %s COMMIT has arrived: the writer hears that it is unsure',
  async (when) => {
    const proxy = await cuttingProxy(postgres().port)
    onTestFinished(() => proxy.close())
    const { database } = await opened({ ...target, port: proxy.port })
    let runs = 0
    const told = vi.fn<() => void>()
    database.onUnsure(told)
    proxy.cutAt('COMMIT', when)
    const written = database.transaction(async (tx) => {
      runs += 1
      await tx.run(sql`INSERT INTO t (id) VALUES (1)`)
    })
    await expect(written).rejects.toMatchObject({ code: 'storage_unsure' })
    expect(runs).toBe(1)
    expect(await database.all(sql`SELECT id FROM t`)).toEqual(when === 'after' ? [{ id: 1 }] : [])
    await database.probe()
    await expect.poll(() => told.mock.calls.length).toBe(1)
  },
)

test('a connection lost in the middle of a transaction: its work runs again, once', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const { database } = await opened({ ...target, port: proxy.port })
  let runs = 0
  proxy.cutAt('INSERT INTO t', 'after')
  await database.transaction(async (tx) => {
    runs += 1
    await tx.run(sql`INSERT INTO t (id) VALUES (1)`)
  })
  expect(runs).toBe(2)
  expect(await database.all(sql`SELECT id FROM t`)).toEqual([{ id: 1 }])
})

test('while the server is away, reads and writes fail with a time to wait; when it is back, all is as before', async () => {
  const { database, logged } = await opened(target)
  await database.probe()
  await postgres().stop('immediate')
  try {
    for (let time = 0; time < 2; time += 1) {
      const errors = await Promise.all(
        [database.probe(), database.all(sql`SELECT 1`), database.slow(sql`SELECT 1`, 1000)].map((call) =>
          call.catch((error: unknown) => error),
        ),
      )
      for (const error of errors) {
        expect(error).toBeInstanceOf(Fault)
        expect(error).toMatchObject({ type: 'internal_error', code: 'storage_unavailable', retryAfter: 5 })
      }
    }
  } finally {
    await postgres().start()
  }
  await database.probe()
  expect(await database.all(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
  expect(await database.slow(sql`SELECT 1 AS one`, 1000)).toEqual([{ one: 1 }])
  const lines = logged.map((line) => (JSON.parse(line) as { msg: string }).msg)
  expect(lines.filter((line) => line.includes('database not available'))).toHaveLength(1)
  expect(lines.filter((line) => line.includes('database available again'))).toHaveLength(1)
})

test('what waits is written before the database closes; then nothing is', async () => {
  const { database } = await opened(target)
  const writes = [1, 2, 3].map((id) => database.transaction((tx) => tx.run(sql`INSERT INTO t (id) VALUES (${id})`)))
  await database.close()
  await Promise.all(writes)
  await expect(database.transaction(async () => 1)).rejects.toMatchObject({ code: 'stopping' })
  await expect(database.all(sql`SELECT 1`)).rejects.toMatchObject({ code: 'stopping' })
  await expect(database.slow(sql`SELECT 1`, 1000)).rejects.toMatchObject({ code: 'stopping' })
})

test('an error of the server does not quote rows', async () => {
  const { database } = await opened(target)
  const error = await database
    .transaction((tx) => tx.run(sql`INSERT INTO t (id, v) VALUES (NULL, ${'a-secret-word'})`))
    .catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: '23502' })
  expect(JSON.stringify(error)).not.toContain('a-secret-word')
})

test('one box at a time', async () => {
  await opened(target)
  await expect(opened(target)).rejects.toThrow(/Another Pillarbox has the database engine_\d+ of 127.0.0.1:\d+ open/)
})

test('what another box has open is not migrated', async () => {
  await opened(target)
  const newer = folder()
  cpSync(new URL('../../../src/store/postgres/migrations', import.meta.url), join(newer, 'migrations'), { recursive: true })
  const next = String(knownPostgresVersion() + 1).padStart(4, '0')
  writeFileSync(join(newer, `migrations/${next}_more.sql`), 'CREATE TABLE more (id bigint)')
  await expect(preparePostgres(target, true, { folder: `${newer}/` })).rejects.toThrow(/Another Pillarbox has .+ open/)
})
