import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { raw, sql } from '../../src/store/database.ts'
import type { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { folder } from '../support/folder.ts'
import { fillDisk, smallDisk } from '../support/small-disk.ts'
import { openedWithTable } from './opened.ts'

const octets = new Uint8Array(100_000).fill(65)
const add = (database: SqliteDatabase, v: Uint8Array | string): Promise<unknown> =>
  database.transaction((tx) => tx.run(sql`INSERT INTO t (v) VALUES (${v})`))
const count = async (database: SqliteDatabase): Promise<number> =>
  (await database.get<{ n: number }>(sql`SELECT count(*) AS n FROM t`))!.n

/** Writes rows until one is refused; answers how many were kept. */
async function fill(database: SqliteDatabase): Promise<number> {
  for (let row = 0; row < 1000; row++) {
    const [result] = await Promise.allSettled([add(database, octets)])
    if (result.status === 'fulfilled') continue
    expect(result.reason).toMatchObject({ type: 'internal_error', code: 'storage_full', retryAfter: 60 })
    return row
  }
  throw new Error('The disk did not fill up.')
}

it('on a full disk refuses, keeps what it had, and works again once there is room', async () => {
  const mounted = smallDisk(8)
  if (mounted === undefined) return
  const ballast = join(mounted, 'ballast')
  writeFileSync(ballast, new Uint8Array(4 * 1024 * 1024))
  const { file, database } = await openedWithTable(mounted)
  onTestFinished(() => database.close())
  const kept = await fill(database)
  expect(kept).toBeGreaterThan(0)
  const logSize = statSync(`${file}-wal`).size

  const half = database.transaction(async (tx) => {
    await tx.run(sql`INSERT INTO t (v) VALUES ('half')`)
    await tx.run(sql`INSERT INTO t (v) VALUES (${octets})`)
  })
  await expect(half).rejects.toMatchObject({ code: 'storage_full' })
  for (let attempt = 0; attempt < 20; attempt++)
    await expect(add(database, octets)).rejects.toMatchObject({ code: 'storage_full' })
  expect(statSync(`${file}-wal`).size).toBeLessThanOrEqual(logSize + octets.length)
  expect(await count(database)).toBe(kept)
  expect(await database.all(sql`SELECT id FROM t WHERE v = ${octets}`)).toHaveLength(kept)

  rmSync(ballast)
  await add(database, 'after')
  expect(await count(database)).toBe(kept + 1)
  await database.close()
  const check = new DatabaseSync(file)
  expect(check.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' })
  check.close()
})

it('deletes by the room that was reserved also where the log is long and could not be copied', async () => {
  const mounted = smallDisk(32)
  if (mounted === undefined) return
  const { file, database } = await openedWithTable(mounted)
  onTestFinished(() => database.close())
  // as long as it reads, the log is not copied further than it sees
  const reading = new DatabaseSync(file)
  onTestFinished(() => reading.close())
  reading.exec('BEGIN; SELECT count(*) FROM t')
  for (let row = 0; row < 80; row++) await add(database, octets)
  fillDisk(join(mounted, 'ballast'), 2 * 1024 * 1024)
  await database.reserveLog(1024 * 1024)
  fillDisk(join(mounted, 'more'))
  await database.transaction((tx) => tx.run(sql`DELETE FROM t`))
  expect(await count(database)).toBe(0)
})

it('refuses what the database may not grow by, and keeps the rest', async () => {
  const { database } = await openedWithTable(folder())
  onTestFinished(() => database.close())
  const { page_count: pages } = (await database.get<{ page_count: number }>(sql`PRAGMA page_count`))!
  await database.transaction((tx) => tx.all(sql`PRAGMA max_page_count = ${raw(String(pages + 60))}`))
  const kept = await fill(database)
  const swallowed = database.transaction(async (tx) => {
    await tx.run(sql`INSERT INTO t (v) VALUES ('half')`)
    for (let row = 0; row < 5; row++) await tx.run(sql`INSERT INTO t (v) VALUES (${octets})`).catch(() => {})
  })
  await Promise.allSettled([swallowed])
  // whatever became of it: not a row that was not told
  expect(await count(database)).toBeLessThanOrEqual(kept + 1)
  await database.transaction((tx) => tx.all(sql`PRAGMA max_page_count = 100000`))
  await add(database, octets)
  expect(await database.all(sql`SELECT id FROM t WHERE v = ${octets}`)).toHaveLength(kept + 1)
})
