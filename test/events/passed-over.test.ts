import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { EventLog } from '../../src/events/log.ts'
import { eventType } from '../../src/events/model.ts'
import { sql } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { opened, quiet } from '../store/opened.ts'
import { appliance, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { settled } from '../support/settled.ts'

const wanted = eventType('note.wanted', ['messages:read'], 'A note was added', z.object({}))
const other = eventType('note.other', ['messages:read'], 'Another note was added', z.object({}))

interface Desk {
  file: string
  database: SqliteDatabase
  /** Appends events of these types, one transaction each. */
  add: (...types: (typeof wanted)[]) => Promise<void>
  /** As `add`, all in one transaction. */
  addAll: (type: typeof wanted, count: number) => Promise<void>
  follow: (options?: { fails?: () => boolean; concerns?: (id: string) => boolean }) => Promise<() => Promise<void>>
  /** Resolves when all events are read. */
  settled: () => Promise<void>
  /** Places of the events that were read, in order, and of all there are of the type. */
  read: () => Promise<number[]>
  ofInterest: () => Promise<number[]>
  bookmark: () => Promise<number>
  end: () => Promise<number>
  /** Commits forced to disk up to now. */
  commits: () => number
}

async function desk(file?: string): Promise<Desk> {
  let commits = 0
  const sync = async (handle: { datasync: () => Promise<void> }): Promise<void> => {
    commits += 1
    await handle.datasync()
  }
  const path = file ?? (await prepared())
  const database = await SqliteDatabase.open(path, quiet, { sync })
  onTestFinished(() => database.close())
  const events = new EventLog(database, { now: () => Date.UTC(2026, 10, 20) })
  const one = { account_id: 'acct_1', identity_id: null, data: {} }
  const seqs = async (query: ReturnType<typeof sql>): Promise<number[]> =>
    (await database.all<{ seq: number }>(query)).map(({ seq }) => seq)
  return {
    file: path,
    database,
    add: async (...types) => {
      for (const type of types) await database.transaction((tx) => events.append(tx, type, one))
    },
    addAll: (type, count) =>
      database.transaction(async (tx) => {
        for (let index = 0; index < count; index += 1) await events.append(tx, type, one)
      }),
    follow: async ({ fails = () => false, concerns } = {}) => {
      const stop = events.follow(
        'reader',
        async (tx, batch) => {
          if (fails()) throw new Error('cannot read')
          for (const { seq } of batch) await tx.run(sql`INSERT INTO seen (event) VALUES (${seq})`)
        },
        quiet,
        { types: [wanted.name], ...(concerns && { filter: async (batch) => batch.filter(({ id }) => concerns(id)) }) },
      )
      await settled(events)
      return stop
    },
    settled: () => settled(events),
    read: () => seqs(sql`SELECT event AS seq FROM seen ORDER BY rowid`),
    ofInterest: () => seqs(sql`SELECT seq FROM events WHERE type = ${wanted.name} ORDER BY seq`),
    bookmark: async () => (await seqs(sql`SELECT seq FROM bookmarks`))[0]!,
    end: async () => (await seqs(sql`SELECT max(seq) AS seq FROM events`))[0]!,
    commits: () => commits,
  }
}

async function prepared(): Promise<string> {
  const { file, database } = await opened(folder())
  await database.transaction((tx) => tx.run(sql`CREATE TABLE seen (event)`))
  await database.close()
  return file
}

test('events of no interest cost no commit, whether their type is or only they are not', async () => {
  const { add, follow, commits, settled: rest, read, ofInterest, bookmark, end } = await desk()
  const mine = new Set<string>()
  const stop = await follow({ concerns: (id) => mine.has(id) })
  const before = { commits: commits(), bookmark: await bookmark() }
  for (let round = 0; round < 50; round += 1) await add(other, wanted)
  await rest()
  expect(commits() - before.commits).toBe(100)
  expect(await bookmark()).toBe(before.bookmark)
  expect(await read()).toEqual([])
  await stop()
  expect(await bookmark()).toBe(await end())
  expect(commits() - before.commits).toBe(101)
  expect(await ofInterest()).toHaveLength(50)
})

test('each event of interest is read once, also across starts without a stop and with others all around it', async () => {
  const first = await desk()
  await first.follow()
  await first.add(other, wanted, other, other)
  await first.settled()
  expect(await first.read()).toEqual(await first.ofInterest())
  await first.add(other, other)
  // as when it is killed: what was passed over is written down nowhere
  await first.database.close()
  const second = await desk(first.file)
  expect(await second.bookmark()).toBeLessThan(await second.end())
  await second.add(other, wanted, wanted, other)
  const stop = await second.follow()
  await second.add(other, wanted, other)
  await second.settled()
  expect(await second.read()).toEqual(await second.ofInterest())
  await stop()
  const third = await desk(second.file)
  const stopAgain = await third.follow()
  await third.add(wanted)
  await third.settled()
  expect(await third.read()).toEqual(await third.ofInterest())
  expect(await third.read()).toHaveLength(5)
  await stopAgain()
})

test('nothing is passed over that a failing reading did not get to', async () => {
  const { add, follow, settled: rest, read, ofInterest, bookmark } = await desk()
  let broken = true
  let tries = 0
  const fails = (): boolean => {
    tries += 1
    return broken
  }
  const stop = await follow({ fails })
  const before = await bookmark()
  await add(other, wanted, other, wanted, other)
  await expect.poll(() => tries).toBeGreaterThan(1)
  await stop()
  expect(await bookmark()).toBeLessThanOrEqual(before + 1)
  broken = false
  const stopAgain = await follow()
  await add(other)
  await rest()
  expect(await read()).toEqual(await ofInterest())
  await stopAgain()
})

test('after very many that were passed over the bookmark follows, so that no start looks at them all again', async () => {
  const { add, addAll, follow, settled: rest, bookmark, end, commits } = await desk()
  const stop = await follow()
  const before = await bookmark()
  await addAll(other, 9_999)
  await rest()
  expect(await bookmark()).toBe(before)
  await add(other)
  await rest()
  expect(await bookmark()).toBe(await end())
  const moved = commits()
  await add(other, other)
  expect(commits() - moved).toBe(2)
  await stop()
})

test('mail that nobody asked to hear of moves no bookmark of the box; the end of an identity moves those that heed it', async () => {
  const box = await appliance({ PILLARBOX_MAIL__POSTMASTER: 'operator@pillarbox.test' })
  const hook = { url: 'https://hooks.test/in', events: ['sms.received'] }
  expect((await box.call('POST', '/v1/webhooks', hook)).status).toBe(201)
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'))
  onTestFinished(() => database.close())
  const bookmarks = (): Record<string, unknown> =>
    Object.fromEntries(
      database
        .prepare('SELECT name, seq FROM bookmarks')
        .all()
        .map(({ name, seq }) => [name, seq]),
    )
  await box.settled()
  expect(Object.keys(bookmarks()).toSorted()).toEqual(['identities', 'reputation', 'sending', 'webhooks'])
  const before = bookmarks()
  const { body: alice } = await box.call('POST', '/v1/identities', { name: 'Alice' })
  for (let index = 0; index < 3; index += 1) {
    const raw = message({ To: alice.email, Subject: 'Hello', 'Message-ID': `<${index}@sender.test>` }, 'Hello.\n')
    expect(await deliver(box.smtp, { to: alice.email, raw })).toMatch(/^250/)
  }
  const { body: events } = await box.call('GET', `/v1/identities/${alice.id}/events?type=email.received`)
  expect(events.data).toHaveLength(3)
  expect(bookmarks()).toEqual(before)
  expect((await box.call('DELETE', `/v1/identities/${alice.id}`)).status).toBe(200)
  const { end } = database.prepare('SELECT max(seq) AS end FROM events').get() as { end: number }
  await box.settled()
  expect(bookmarks()).toEqual({ ...before, identities: end, webhooks: end })
})
