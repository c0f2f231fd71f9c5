import { expect, onTestFinished, test, vi } from 'vitest'
import * as z from 'zod'
import { createLog } from '../../src/core/log.ts'
import { EventLog } from '../../src/events/log.ts'
import { type Event, eventType } from '../../src/events/model.ts'
import { sql } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { opened, quiet } from '../store/opened.ts'
import { folder } from '../support/folder.ts'
import { settled } from '../support/settled.ts'

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
  await settled(events)
  expect(await database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await Promise.all(numbers(0, 500).map((text) => add(text)))
  await settled(events)
  expect((await written()).length).toBe(500)
  expect(await written()).toEqual(numbers(0, 500))
  await stop()
})

test('what came while nobody followed is read at the next start, and nothing twice', async () => {
  const first = await desk()
  const stop = first.events.follow('reader', first.write, quiet)
  await settled(first.events)
  expect(await first.database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await first.add('0')
  await settled(first.events)
  expect(await first.written()).toEqual(['0'])
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
  await settled(again.events)
  expect((await again.written()).length).toBe(261)
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
  await settled(events)
  expect(await database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await Promise.all(numbers(0, 4).map((text) => add(text)))
  await expect.poll(() => lines.length).toBeGreaterThanOrEqual(2)
  expect(await written()).toEqual(['0', '1'])
  expect(lines[0]).toContain('cannot read 2')
  broken = false
  await settled(events)
  expect(await written()).toEqual(numbers(0, 4))
  await stop()
})

test('what a reading writes stays only with its bookmark', async () => {
  const { events, add, written, write, database } = await desk()
  const lines: string[] = []
  const log = createLog('info', { write: (line: string) => void lines.push(line) })
  const trigger = sql`CREATE TRIGGER refuse BEFORE UPDATE ON bookmarks BEGIN SELECT RAISE(ABORT, 'no bookmark today'); END`
  const stop = events.follow('reader', write, log)
  await settled(events)
  expect(await database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await database.transaction((tx) => tx.run(trigger))
  await add('0')
  await expect.poll(() => lines.length).toBeGreaterThanOrEqual(1)
  expect(lines[0]).toContain('no bookmark today')
  expect(await written()).toEqual([])
  await database.transaction((tx) => tx.run(sql`DROP TRIGGER refuse`))
  await settled(events)
  expect(await written()).toEqual(['0'])
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
  await settled(events)
  expect(await database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  await Promise.all(numbers(0, 10).map((text) => add(text)))
  await settled(events)
  expect(await written()).toEqual(numbers(0, 10))
  await stop()
})

test('stopping waits for the batch in hand, and nothing is read after it', async () => {
  const { events, add, written, write, database } = await desk()
  const stop = events.follow('reader', write, quiet)
  await settled(events)
  expect(await database.get(sql`SELECT 1 FROM bookmarks`)).toBeDefined()
  const added = add('0')
  await stop()
  const after = await written()
  await added
  await add('1')
  await settled(events)
  expect(await written()).toEqual(after)
})

test('while an event is handled in many parts, no part of the log is read twice, however much comes in behind it', async () => {
  const { events, add, database } = await desk()
  const other = eventType('note.other', ['messages:read'], 'Another note was added', z.object({ text: z.string() }))
  let parts = 0
  const seen: (string | null)[] = []
  const reads = vi.spyOn(events, 'headers')
  events.follow(
    'reader',
    async (tx, [first]) => {
      for (let count = 0; count < 20; count += 1)
        await events.append(tx, other, { account_id: 'acct_1', identity_id: null, data: { text: 'behind' } })
      parts += 1
      if (parts % 100 !== 0) return 0
      seen.push(first!.identity_id)
      return 1
    },
    quiet,
    { types: [noted.name] },
  )
  await settled(events)
  reads.mockClear()
  await add('one')
  await settled(events)
  await add('two')
  await settled(events)
  expect(seen).toEqual(['one', 'two'])
  const begins = reads.mock.calls.map(([seq]) => seq)
  expect(begins).toEqual([...new Set(begins)])
  expect(await database.get(sql`SELECT count(*) AS n FROM events`)).toEqual({ n: 4002 })
})

test('a rare event is found behind many of other types, a bounded part of the log at a time', async () => {
  const { events, add, database } = await desk()
  const seen: (string | null)[] = []
  const follow = (): (() => Promise<void>) =>
    events.follow('reader', async (_tx, batch) => void seen.push(...batch.map(({ identity_id }) => identity_id)), quiet, {
      types: [noted.name],
    })
  await follow()()
  await database.transaction((tx) =>
    tx.run(sql`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9000)
      INSERT INTO events (id, type, account_id, created_at, data) SELECT 'evt_' || n, 'note.other', 'acct_1', '2026', '{}' FROM numbers`),
  )
  await add('rare')
  const reads = vi.spyOn(events, 'headers')
  follow()
  await settled(events)
  expect(seen).toEqual(['rare'])
  expect(reads.mock.calls.length).toBe(5)
})
