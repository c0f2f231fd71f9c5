import { deflateRawSync } from 'node:zlib'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import * as z from 'zod'
import { EventLog, type EventQuery } from '../../src/events/log.ts'
import { type Event, eventType } from '../../src/events/model.ts'
import { endOf, markerAt } from '../../src/events/positions.ts'
import { insertWhole } from '../../src/store/blobs.ts'
import { sql, type Transaction } from '../../src/store/database.ts'
import type { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { opened } from '../store/opened.ts'
import { folder } from '../support/folder.ts'

const Note = z.object({ id: z.string().optional(), text: z.string(), body: z.string().optional() })
const noted = eventType('note.added', ['messages:read'], 'A note was added', Note)
const erased = eventType('note.erased', ['messages:read'], 'A note was erased', Note)

const texts = (list: Event[]): string[] => list.map((event) => (event.data as { text: string }).text)

describe('the log', () => {
  let database: SqliteDatabase
  let events: EventLog
  beforeEach(async () => {
    database = (await opened(folder())).database
    events = new EventLog(database, { now: () => Date.UTC(2026, 10, 20, 10, 5) })
    const used = database
    onTestFinished(() => used.close())
  })

  const add = (text: string, account_id = 'acct_1', type = noted): Promise<Event> =>
    database.transaction((tx) => events.append(tx, type, { account_id, identity_id: 'ident_1', data: { text } }))

  const list = ({ limit = 10, ...input }: Partial<EventQuery> & { limit?: number } = {}): ReturnType<EventLog['list']> => {
    const all = { types: ['note.added', 'note.erased'], condition: sql`1 = 1`, ascending: true, after: undefined }
    return events.list({ account_id: 'acct_1', identity_id: 'ident_1', ...all, ...input }, limit)
  }

  it('keeps the order of the commits, and tells it in that order', async () => {
    const heard: Event[] = []
    events.subscribe((event) => heard.push(event))
    const added = await Promise.all(Array.from({ length: 100 }, (_, index) => add(`${index}`)))
    await sleep(20)
    const { events: kept } = await list({ limit: 1000 })
    expect(texts(kept)).toEqual(texts(added))
    expect(heard).toEqual(kept)
    expect(kept.map((event) => event.seq)).toEqual(kept.map((event) => event.seq).toSorted((left, right) => left - right))
    expect(new Set(kept.map((event) => event.id)).size).toBe(100)
    expect(kept[0]).toMatchObject({ type: 'note.added', account_id: 'acct_1', created_at: '2026-11-20T10:05:00.000Z' })
  })

  it('gives an account the marker of its newest event when that is near, and else a time, whatever others have written', async () => {
    const mine = sql`account_id = ${'acct_1'}`
    const own = await add('mine')
    for (let number = 0; number < 200; number += 1) await add('theirs', 'acct_2')
    expect(await markerAt(events, await endOf(events), mine)).toBe(own.id)
    for (let number = 0; number < 200; number += 1) await add('theirs', 'acct_2')
    // no further back: each client may ask for it as often as it likes
    expect(await markerAt(events, await endOf(events), mine)).toBe('2026-11-20T10:05:00.000Z')
  })

  it('tells only what is committed', async () => {
    const heard: string[] = []
    events.subscribe((event) => heard.push(...texts([event])))
    const failing = database.transaction(async (tx) => {
      await events.append(tx, noted, { account_id: 'acct_1', identity_id: null, data: { text: 'never' } })
      await sleep(0)
      expect(heard).toEqual([])
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    await add('kept')
    await sleep(20)
    expect(heard).toEqual(['kept'])
    expect(texts((await list()).events)).toEqual(['kept'])
  })

  it('tells the other readers although one fails, and none that stopped', async () => {
    const heard: string[] = []
    events.subscribe(() => {
      throw new Error('a reader’s own trouble')
    })
    const stop = events.subscribe((event) => heard.push(`first ${texts([event])[0]}`))
    events.subscribe((event) => heard.push(`second ${texts([event])[0]}`))
    await add('a')
    await sleep(20)
    stop()
    await add('b')
    await sleep(20)
    expect(heard).toEqual(['first a', 'second a', 'second b'])
  })

  it('keeps long fields once, in the blob, and gives them back', async () => {
    const body = 'a long body '.repeat(200)
    const heard: Event[] = []
    events.subscribe((event) => heard.push(event))
    const appended = await database.transaction(async (tx) => {
      const id = await insertWhole(tx, {
        size: body.length,
        sha256: null,
        deflated: true,
        bytes: deflateRawSync(JSON.stringify({ body })),
      })
      return events.append(tx, noted, {
        account_id: 'acct_1',
        identity_id: 'ident_1',
        data: { text: 'x', body },
        blob: { id, fields: ['body'] },
      })
    })
    await sleep(20)
    expect(appended.data).toEqual({ text: 'x', body })
    expect(heard).toEqual([appended])
    expect((await list()).events).toEqual([appended])
    expect(await database.get(sql`SELECT data FROM events`)).toMatchObject({ data: '{"text":"x"}' })
    await database.transaction((tx) => tx.run(sql`DELETE FROM blobs`))
    expect((await list({ limit: 1 })).events[0]!.data).toEqual({ text: 'x' })
  })

  it('hides the events of a resource without moving what they hold, however many there are, and shows them again', async () => {
    const body = 'a long body '.repeat(200)
    const resource = { id: 'email_1', text: 'x'.repeat(20_000), body }
    await database.transaction(async (tx) => {
      const id = await insertWhole(tx, {
        size: body.length,
        sha256: null,
        deflated: true,
        bytes: deflateRawSync(JSON.stringify({ body })),
      })
      const event = { account_id: 'acct_1', identity_id: 'ident_1', data: resource, blob: { id, fields: ['body'] as const } }
      for (let count = 0; count < 40; count += 1) await events.append(tx, noted, event)
    })
    const other = await add('other')
    const before = (await list()).events
    expect(before[0]!.data).toEqual(resource)
    let statements = 0
    const counting = (tx: Transaction): Transaction => ({
      ...tx,
      writes: tx.writes,
      afterCommit: (listener) => tx.afterCommit(listener),
      get: (query) => ((statements += 1), tx.get(query)),
      all: (query) => ((statements += 1), tx.all(query)),
      run: (query) => ((statements += 1), tx.run(query)),
    })
    for (let round = 0; round < 2; round += 1) {
      await database.transaction((tx) => events.hide(counting(tx), 'email_1'))
      const hidden = await list({ limit: 100 })
      expect(hidden.events.map(({ data }) => data)).toEqual([
        ...Array.from({ length: 40 }, () => ({ id: 'email_1', deleted: true })),
        other.data,
      ])
      expect((await events.find(before[0]!.id))!.data).toEqual({ id: 'email_1', deleted: true })
      expect((await events.sizeOf(before[0]!.id))!.octets).toBeLessThan(1000)
      expect(await database.get(sql`SELECT sum(octet_length(data)) AS copied FROM hidden_events`)).toEqual({ copied: 0 })
      await database.transaction((tx) => events.reveal(counting(tx), 'email_1'))
      expect((await list()).events).toEqual(before)
      expect(await database.all(sql`SELECT seq FROM hidden_events`)).toEqual([])
    }
    expect(statements).toBeLessThan(10)
  })

  it('shows again what an older version hid, which moved the data of events', async () => {
    const event = await database.transaction((tx) =>
      events.append(tx, noted, { account_id: 'acct_1', identity_id: 'ident_1', data: { id: 'email_1', text: 'x' } }),
    )
    await database.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO hidden_events (seq, data, blob_id) SELECT seq, data, blob_id FROM events`)
      await tx.run(sql`UPDATE events SET data = ${'{"id":"email_1","deleted":true}'}, blob_id = NULL`)
    })
    expect((await events.find(event.id))!.data).toEqual({ id: 'email_1', deleted: true })
    await database.transaction((tx) => events.reveal(tx, 'email_1'))
    expect(await events.find(event.id)).toEqual(event)
  })

  it('pages forth and back, under any condition', async () => {
    const all: Event[] = []
    for (const text of ['a', 'b', 'c', 'd', 'e']) all.push(await add(text, 'acct_1', text === 'c' ? erased : noted))
    const [, b, , d] = all
    const back = { ascending: false }
    expect(texts((await list({ after: b!.seq, limit: 2 })).events)).toEqual(['c', 'd'])
    expect(texts((await list({ after: d!.seq, limit: 2, ...back })).events)).toEqual(['c', 'b'])
    expect(texts((await list({ after: b!.seq, types: ['note.erased'] })).events)).toEqual(['c'])
    // a condition with an OR keeps to the place as well
    const either = sql`type = ${'note.erased'} OR type = ${'note.added'}`
    expect(texts((await list({ after: d!.seq, condition: either })).events)).toEqual(['e'])
    expect(texts((await list({ after: b!.seq, condition: either, ...back })).events)).toEqual(['a'])
    expect((await events.last(sql`type = ${'note.erased'}`))!.id).toBe(all[2]!.id)
    expect(await events.last(sql`type = ${'note.lost'}`)).toBeUndefined()
  })

  it('knows the place of an event, for its own account only', async () => {
    const event = await add('a')
    expect(await events.seqOf(event.id, 'acct_1')).toBe(event.seq)
    expect(await events.seqOf(event.id, 'acct_2')).toBeUndefined()
    expect(await events.seqOf('evt_none', 'acct_1')).toBeUndefined()
  })
})
