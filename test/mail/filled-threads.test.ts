import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { isReply } from '../../src/mail/address.ts'
import type { Email } from '../../src/mail/model.ts'
import { removeFromThread } from '../../src/mail/threads.ts'
import { SendLimits } from '../../src/outbound/compose/limits.ts'
import { type Reader, sql, type Sql, type Transaction } from '../../src/store/database.ts'
import type { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { opened } from '../store/opened.ts'
import { folder } from '../support/folder.ts'

// Strangers can fill a thread with any number of messages, and before version 0036 of the database with addresses of 64 KB.

const long = `${'a'.repeat(60_000)}@sender.test`

interface Row {
  id: string
  from: string
  to?: string
  direction?: 'inbound' | 'outbound'
  message_id?: string
  duplicate_of?: string
}

async function thread(rows: readonly Row[]): Promise<SqliteDatabase> {
  const { database } = await opened(folder())
  onTestFinished(() => database.close())
  await database.transaction(async (tx) => {
    await tx.run(
      sql`INSERT INTO threads (id, identity_id, subject, subject_key, participants_key, participants, message_count, unread_count, last_message_at,
        last_seq, snippet) VALUES ('thread', 'ident', '', '', '', '[]', ${rows.length}, 0, '', 0, '')`,
    )
    for (const { id, from, to = 'ada@box.test', direction = 'inbound', message_id = null, duplicate_of = null } of rows)
      await tx.run(
        sql`INSERT INTO emails (id, identity_id, thread_id, direction, status, from_address, from_name, to_text, subject, snippet, read, spam, automated,
          labels, size, has_attachments, message_id, codes, received_at, created_at, detail, trace, duplicate_of, raw_id, body_id)
          VALUES (${id}, 'ident', 'thread', ${direction}, 'received', ${from}, '', ${to}, '', '', 1, 0, 0, '[]', 0, 0, ${message_id}, '[]',
          '2026-11-20T10:00:00.000Z', '', '{}', 'Date: x', ${duplicate_of}, 0, 0)`,
      )
  })
  return database
}

/** A reader that remembers what it was asked, and how many characters its rows had. */
function recorded<From extends Reader>(reader: From): { reader: From; asked: Sql[]; characters: () => number } {
  const asked: Sql[] = []
  let characters = 0
  const note = (rows: readonly unknown[], query: Sql): void => {
    asked.push(query)
    for (const row of rows) for (const value of Object.values(row ?? {})) characters += String(value).length
  }
  const all: Reader['all'] = async (query) => {
    const rows = await reader.all<never>(query)
    note(rows, query)
    return rows
  }
  const get: Reader['get'] = async (query) => {
    const row = await reader.get<never>(query)
    note([row], query)
    return row
  }
  const run = (query: Sql) => (reader as unknown as Transaction).run(query)
  return { reader: { all, get, run } as unknown as From, asked, characters: () => characters }
}

/** How SQLite finds the rows of a query. */
async function planOf(database: Reader, query: Sql): Promise<string> {
  const rows = await database.all<{ detail: string }>(sql`EXPLAIN QUERY PLAN ${query}`)
  return rows.map(({ detail }) => detail).join('; ')
}

const participants = async (database: Reader): Promise<string[]> => {
  const row = await database.get<{ participants: string }>(sql`SELECT participants FROM threads`)
  return JSON.parse(row!.participants) as string[]
}

test('a deletion in a thread of addresses of 60 KB reads half a megabyte of them at most', async () => {
  const rows = Array.from({ length: 200 }, (_, number) => ({ id: `email_${number}`, from: `${number}${long}` }))
  const database = await thread([...rows, { id: 'email_last', from: 'bob@sender.test' }])
  let read = 0
  await database.transaction(async (tx) => {
    const { reader, characters } = recorded(tx)
    await removeFromThread(reader, 'thread', false)
    read = characters()
  })
  expect(read).toBeGreaterThan(0)
  expect(read).toBeLessThanOrEqual(512 * 1024 + 1024)
  expect((await participants(database)).toSorted()).toEqual(['ada@box.test', 'bob@sender.test'])
})

test('after a deletion each recipient of what was sent is a participant, in the order in which they came', async () => {
  const database = await thread([
    { id: 'email_1', from: 'ada@box.test', to: 'bob@sender.test, kim@sender.test', direction: 'outbound' },
    { id: 'email_2', from: 'sam@sender.test' },
    { id: 'email_3', from: 'eve@sender.test', duplicate_of: 'email_2' },
    { id: 'email_4', from: 'bob@sender.test' },
  ])
  await database.transaction((tx) => removeFromThread(tx, 'thread', false))
  expect(await participants(database)).toEqual(['ada@box.test', 'bob@sender.test', 'kim@sender.test', 'sam@sender.test'])
})

const verified: Partial<Email> = {
  identity_id: 'ident',
  thread_id: 'thread',
  verified_domain: 'sender.test',
  spam: false,
  automated: false,
  in_reply_to: '<ours@box.test>',
  references: [],
  authentication: {
    spf: { result: 'pass', domain: 'sender.test', reason: null },
    dkim: [],
    dmarc: { result: 'pass', domain: 'sender.test', policy: null, aligned_by: ['spf'], reason: null },
    arc: { result: 'none', chain: 0, reason: null },
  },
}
const ours: Row = { id: 'email_1', from: 'ada@box.test', direction: 'outbound', message_id: '<ours@box.test>' }

test.each([
  ['bob@sender.test', true],
  ['eve@sender.test', false],
  ['EVE@sender.test', false],
  ['ÉVA@sender.test', false],
])('a reply of %s counts: %s, and the rest of its thread is not read for that', async (from, counts) => {
  const database = await thread([
    ours,
    { id: 'email_2', from: 'Eve@sender.test' },
    { id: 'email_3', from: 'ÉVA@sender.test' },
    { id: 'email_4', from },
  ])
  const { reader, asked } = recorded(database as Reader)
  expect(await isReply(reader, 'acct', { ...verified, id: 'email_4', from } as Email)).toBe(counts)
  expect(await planOf(database, asked.at(-1)!)).toMatch(
    /^SEARCH emails USING INDEX emails_by_author \(thread_id=\? AND <expr>=\?\)$/,
  )
})

test('of a thread only the automatic messages of the box are read to see whether two programs answer each other', async () => {
  const database = await thread([ours, { id: 'email_2', from: 'bob@sender.test', message_id: '<bob@sender.test>' }])
  const { reader, asked } = recorded(database as Reader)
  const limits = new SendLimits(systemClock, { rate_per_identity: 0, rate_per_domain: 0, automatic_replies: 3 })
  await limits.requireAutomatic(reader, 'ident', ['<bob@sender.test>'], ['bob@sender.test'])
  const plan = await planOf(database, asked.at(-1)!)
  expect(plan).toMatch(/^SEARCH emails USING INDEX emails_automatic \(thread_id=\? AND received_at>\?\)/)
})
