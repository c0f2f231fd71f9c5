import { closeSync, openSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { type Database, sql } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { folder } from '../support/folder.ts'
import { opened, quiet } from './opened.ts'

async function index(database: Database, rows: readonly number[]): Promise<void> {
  for (const row of rows) {
    await database.transaction((tx) =>
      tx.run(
        sql`INSERT INTO emails_search (rowid, owner, sender, subject, body) VALUES (${row}, 'ident', 'a@far.test', ${`number ${row}`}, ${`word${row}`})`,
      ),
    )
  }
}

test('a search index that was merged between two integrity checks is not called damaged', async () => {
  const { database } = await opened(folder())
  onTestFinished(() => database.close())
  const seen: (string | null)[] = []
  for (let round = 0; round < 12; round += 1) {
    // seven to ten messages are what it takes for the segments of the first look to be gone at the second
    await index(
      database,
      Array.from({ length: 7 + (round % 4) }, (_, place) => round * 10 + place + 1),
    )
    seen.push(await database.damage(30_000))
    // a search in between uses the other long-lived connection
    await database.slow(sql`SELECT rowid FROM emails_search WHERE emails_search MATCH ${'number'}`, 30_000)
  }
  expect(seen).toEqual(seen.map(() => null))
})

test('damage that is there is named, each time', async () => {
  const directory = folder()
  const { file, database: whole } = await opened(directory)
  await index(whole, [1, 2, 3])
  await whole.close()
  const database = new DatabaseSync(file)
  const { rootpage } = database.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'emails_by_thread'`).get() as {
    rootpage: number
  }
  const { page_size } = database.prepare('PRAGMA page_size').get() as { page_size: number }
  database.close()
  const handle = openSync(file, 'r+')
  writeSync(handle, Buffer.alloc(64, 0xff), 0, 64, (rootpage - 1) * page_size)
  closeSync(handle)
  const damaged = await SqliteDatabase.open(file, quiet)
  onTestFinished(() => damaged.close())
  expect(await damaged.damage(30_000)).toMatch(/page|Tree/)
  expect(await damaged.damage(30_000)).toMatch(/page|Tree/)
})
