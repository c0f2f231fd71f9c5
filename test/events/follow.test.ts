import { expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { createLog } from '../../src/core/log.ts'
import { EventLog } from '../../src/events/log.ts'
import { type Event, eventType } from '../../src/events/model.ts'
import { sql } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { opened, quiet } from '../store/opened.ts'
import { folder } from '../support/folder.ts'

const noted = eventType('note.added', ['messages:read'], 'A note was added', z.object({ text: z.string() }))

interface Desk {
  events: EventLog
  database: SqliteDatabase
  add: (text: string) => Promise<Event>
  /** What a reading wrote, in order, as it is on disk. */
  written: () => Promise<string[]>
  /** A reading that writes each text down. */
  write: Parameters<EventLog['follow']>[1]
}

async function desk(): Promise<Desk & { file: string }> {
  const { file, database } = await opened(folder())
  await database.transaction((tx) => tx.run(sql`CREATE TABLE seen (seq INTEGER PRIMARY KEY AUTOINCREMENT, text)`))
  return { file, ...over(database) }
}

function over(database: SqliteDatabase): Desk {
  onTestFinished(() => database.close())
  const events = new EventLog(database, { now: () => Date.UTC(2026, 10, 20) })
  return {
    events,
    database,
    add: (text) =>
      database.transaction((tx) => events.append(tx, noted, { account_id: 'acct_1', identity_id: text, data: { text } })),
    written: async () => (await database.all<{ text: string }>(sql`SELECT text FROM seen ORDER BY seq`)).map(({ text }) => text),
    write: async (tx, batch) => {
      for (const { identity_id } of batch) await tx.run(sql`INSERT INTO seen (text) VALUES (${identity_id})`)
    },
  }
}

const numbers = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, index) => String(from + index))

test('a new follower begins at the end of the log, and then reads each event once, in order', async () => {
  const { events, add, written, write, database } = await desk()
  await add('before')
  const stop = events.follow('reader', write, quiet)
  await expect.poll(() => database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await Promise.all(numbers(0, 500).map((text) => add(text)))
  await expect.poll(async () => (await written()).length).toBe(500)
  expect(await written()).toEqual(numbers(0, 500))
  await stop()
})

test('what came while nobody followed is read at the next start, and nothing twice', async () => {
  const first = await desk()
  const stop = first.events.follow('reader', first.write, quiet)
  await expect.poll(() => first.database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await first.add('0')
  await expect.poll(() => first.written()).toEqual(['0'])
  await stop()
  for (const text of numbers(1, 260)) void first.add(text)
  await first.add('260')
  await first.database.close()

  const again = over(await SqliteDatabase.open(first.file, quiet))
  const sizes: number[] = []
  const stopAgain = again.events.follow(
    'reader',
    async (tx, batch) => {
      sizes.push(batch.length)
      await again.write(tx, batch)
    },
    quiet,
  )
  await expect.poll(async () => (await again.written()).length).toBe(261)
  expect(await again.written()).toEqual(numbers(0, 261))
  expect(Math.max(...sizes)).toBeLessThanOrEqual(200)
  await stopAgain()
})

test('a reading that fails leaves nothing behind, is logged and tried again; the events before the one in trouble get through', async () => {
  const { events, add, written, write, database } = await desk()
  const lines: string[] = []
  const log = createLog('info', { write: (line: string) => void lines.push(line) })
  let broken = true
  const stop = events.follow(
    'reader',
    async (tx, batch) => {
      await write(tx, batch)
      if (broken && batch.some(({ identity_id }) => identity_id === '2')) throw new Error('cannot read 2')
    },
    log,
  )
  await expect.poll(() => database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await Promise.all(numbers(0, 4).map((text) => add(text)))
  await expect.poll(() => lines.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(2)
  expect(await written()).toEqual(['0', '1'])
  expect(lines[0]).toContain('cannot read 2')
  broken = false
  await expect.poll(written, { timeout: 20_000 }).toEqual(numbers(0, 4))
  await stop()
})

test('what a reading writes stays only with its bookmark', async () => {
  const { events, add, written, write, database } = await desk()
  const lines: string[] = []
  const log = createLog('info', { write: (line: string) => void lines.push(line) })
  const trigger = sql`CREATE TRIGGER refuse BEFORE UPDATE ON bookmarks BEGIN SELECT RAISE(ABORT, 'no bookmark today'); END`
  const stop = events.follow('reader', write, log)
  await expect.poll(() => database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await database.transaction((tx) => tx.run(trigger))
  await add('0')
  await expect.poll(() => lines.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(1)
  expect(lines[0]).toContain('no bookmark today')
  expect(await written()).toEqual([])
  await database.transaction((tx) => tx.run(sql`DROP TRIGGER refuse`))
  await expect.poll(written, { timeout: 20_000 }).toEqual(['0'])
  await stop()
})

test('a reading may take only the first few; the rest comes again', async () => {
  const { events, add, written, write, database } = await desk()
  const stop = events.follow(
    'reader',
    async (tx, batch) => {
      await write(tx, batch.slice(0, 3))
      return Math.min(3, batch.length)
    },
    quiet,
  )
  await expect.poll(() => database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await Promise.all(numbers(0, 10).map((text) => add(text)))
  await expect.poll(written).toEqual(numbers(0, 10))
  await stop()
})

test('stopping waits for the batch in hand, and nothing is read after it', async () => {
  const { events, add, written, write, database } = await desk()
  const stop = events.follow('reader', write, quiet)
  await expect.poll(() => database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  const added = add('0')
  await stop()
  const after = await written()
  await added
  await add('1')
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await written()).toEqual(after)
})
