import { closeSync, existsSync, openSync, readlinkSync, readSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sql } from '../../src/store/database.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase, type SqliteOptions } from '../../src/store/sqlite/database.ts'
import { folder } from '../support/folder.ts'
import { openedWithTable, quiet } from './opened.ts'

async function store(options: SqliteOptions): Promise<{ file: string; database: SqliteDatabase }> {
  const opened = await openedWithTable(folder(), options)
  onTestFinished(() => opened.database.close())
  return opened
}

const add = (database: SqliteDatabase, v: number | Uint8Array): Promise<unknown> =>
  database.transaction((tx) => tx.run(sql`INSERT INTO t (v) VALUES (${v})`))
const count = async (database: SqliteDatabase): Promise<number> =>
  (await database.get<{ n: number }>(sql`SELECT count(*) AS n FROM t`))!.n

function head(file: string): Buffer {
  const bytes = Buffer.alloc(32)
  const handle = openSync(file, 'r')
  readSync(handle, bytes, 0, 32, 0)
  closeSync(handle)
  return bytes
}

describe('group commit', () => {
  it('forces many transactions to disk at once, and lets the event loop run meanwhile', async () => {
    let syncs = 0
    let ticks = 0
    const ticking = setInterval(() => (ticks += 1), 1)
    const { database } = await store({
      // a disk that is as slow as five turns of the event loop: it would never be done if the loop stood still
      sync: async (file) => {
        syncs += 1
        const before = ticks
        await expect.poll(() => ticks).toBeGreaterThanOrEqual(before + 5)
        await file.datasync()
      },
    })
    await Promise.all(Array.from({ length: 50 }, (_, index) => add(database, index)))
    clearInterval(ticking)
    expect(await count(database)).toBe(50)
    expect(syncs).toBeLessThanOrEqual(5)
  })

  it('does not go to the disk for transactions that only read', async () => {
    let syncs = 0
    const { database } = await store({ sync: async () => void (syncs += 1) })
    await database.transaction((tx) => tx.all(sql`SELECT * FROM t`))
    expect(syncs).toBe(0)
  })

  it('tells nobody, and shows nothing, before the disk has it', async () => {
    let release!: () => void
    const disk = new Promise<void>((resolve) => (release = resolve))
    const { database } = await store({ sync: () => disk })
    const heard: string[] = []
    const told = database.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO t (v) VALUES (1)`)
      tx.afterCommit(() => heard.push('listener'))
    })
    void told.then(() => heard.push('writer'))
    const behind = add(database, 2)
    await sleep(100)
    expect(heard).toEqual([])
    expect(await count(database)).toBe(0)
    release()
    await told
    expect(await count(database)).toBeGreaterThanOrEqual(1)
    await behind
    await sleep(20)
    expect(heard).toEqual(['writer', 'listener'])
  })

  it('waits for fdatasync of the log, where no other sync is given', async () => {
    const { file, database } = await store({})
    const handle = await open(import.meta.filename)
    onTestFinished(() => handle.close())
    const disk = Promise.withResolvers<void>()
    onTestFinished(() => disk.resolve())
    const synced: string[] = []
    const datasync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync')
    datasync.mockImplementation(function wait(this: FileHandle) {
      synced.push(readlinkSync(`/proc/self/fd/${this.fd}`))
      return disk.promise
    })
    let answered = false
    const told = add(database, 1).then(() => (answered = true))
    await expect.poll(() => synced).toEqual([`${file}-wal`])
    await sleep(50)
    expect(answered).toBe(false)
    disk.resolve()
    await told
    expect(await count(database)).toBe(1)
  })

  it('after a failed sync rejects, writes nothing more, does not show it, and keeps the log for the next start', async () => {
    let syncs = 0
    const { file, database } = await store({
      sync: async () => {
        syncs += 1
        throw new Error('EIO: i/o error, fdatasync')
      },
    })
    const first = Promise.allSettled([add(database, 1)])
    await sleep(0)
    // arrives while the first is being forced: must not be answered by a later sync that seems to work
    const second = Promise.allSettled([add(database, 2)])
    for (const result of [...(await first), ...(await second)])
      expect(result).toMatchObject({ status: 'rejected', reason: { type: 'internal_error', code: 'storage_failed' } })
    await expect(database.probe()).rejects.toMatchObject({ code: 'storage_failed' })
    expect(syncs).toBe(1)
    expect(await count(database)).toBe(0)
    await database.close()
    expect(existsSync(`${file}-wal`)).toBe(true)
    prepare(file, true)
    const again = await SqliteDatabase.open(file, quiet)
    onTestFinished(() => again.close())
    await add(again, 3)
  })

  it('gives up work that never settles, and goes on', async () => {
    const { database } = await store({ timeout: 50 })
    const stuck = database.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO t (v) VALUES (1)`)
      await new Promise(() => {})
    })
    const next = add(database, 2)
    await expect(stuck).rejects.toThrow('did not settle within 50 ms')
    await next
    expect(await database.all(sql`SELECT v FROM t`)).toMatchObject([{ v: 2 }])
  })

  it('says so when another program holds the database, and works once it is gone', async () => {
    const { file, database } = await store({})
    const other = await SqliteDatabase.open(file, quiet, { timeout: 60_000 })
    onTestFinished(() => other.close())
    let free: (() => void) | undefined
    const holding = other.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO t (v) VALUES (1)`)
      await new Promise<void>((resolve) => (free = resolve))
    })
    await sleep(100)
    await expect(add(database, 2)).rejects.toMatchObject({ type: 'internal_error', code: 'storage_busy' })
    free!()
    await holding
    await add(database, 3)
    expect(await count(database)).toBe(2)
  })
})

describe('checkpoints', () => {
  it('start the log again from its beginning under steady writing, so that it does not grow for ever', async () => {
    const { file, database } = await store({ longLog: 200, checkpointDelay: 10 })
    // the number of its beginnings stands in the log's header (sqlite.org/walformat.html, section 4.1)
    const beginning = (): number => head(`${file}-wal`).readUInt32BE(12)
    await add(database, 1)
    const first = beginning()
    const octets = new Uint8Array(20_000).fill(7)
    const write = async (): Promise<void> => {
      for (let round = 0; round < 3000 && beginning() - first < 3; round++) await add(database, octets)
    }
    await Promise.all(Array.from({ length: 8 }, write))
    expect(beginning() - first).toBeGreaterThanOrEqual(3)
  })

  it('stop the store when somebody removes the log under it', async () => {
    const { file, database } = await store({})
    await add(database, 1)
    rmSync(`${file}-wal`)
    let last: PromiseSettledResult<unknown> | undefined
    for (let round = 0; round < 200; round++) {
      ;[last] = await Promise.allSettled([add(database, 2)])
      if (last.status === 'rejected') break
      await sleep(25)
    }
    expect(last).toMatchObject({ status: 'rejected', reason: { code: 'storage_failed' } })
  })

  it('leave one file behind after a clean close', async () => {
    const { file, database } = await store({})
    await add(database, 1)
    await database.close()
    expect(existsSync(`${file}-wal`)).toBe(false)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })
})
