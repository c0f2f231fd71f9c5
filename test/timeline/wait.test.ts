import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Cursors } from '../../src/store/page.ts'
import { systemClock } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { createLog } from '../../src/core/log.ts'
import { EventLog } from '../../src/events/log.ts'
import { Identities } from '../../src/identities/identities.ts'
import { type Email, emailReceived } from '../../src/mail/model.ts'
import { Emails } from '../../src/mail/emails.ts'
import { RawMessages } from '../../src/objects/raw-messages.ts'
import { Quota } from '../../src/mail/quota.ts'
import { Trash } from '../../src/ops/retention/trash.ts'
import { sql } from '../../src/store/database.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { Waiting } from '../../src/timeline/wait.ts'
import { callerOf } from '../support/caller.ts'
import { limitless } from '../support/limitless.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'

test('a wait for one sender does not use up what another sent before', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const from of ['bank@bank.test', 'shop@shop.test', 'bank@bank.test']) {
    await deliver(box.smtp, { to: ada.email, raw: message({ From: from, Subject: `From ${from}` }, 'x\n') })
  }
  const given = async (query: string): Promise<unknown> =>
    (await box.call('GET', `/v1/identities/${ada.id}/wait?timeout=0${query}`)).body['item']?.from ?? null
  expect(await given('&from=shop')).toBe('shop@shop.test')
  expect(await given('&from=bank')).toBe('bank@bank.test')
  expect(await given('&from=shop')).toBe(null)
  expect(await given('')).toBe('bank@bank.test')
  expect(await given('')).toBe(null)
})

test('HEAD is no way to wait, and uses up nothing', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Once' }, 'x\n') })
  const path = `/v1/identities/${ada.id}/wait?timeout=0`
  expect((await box.call('HEAD', path)).status).toBe(404)
  expect((await box.call('GET', path)).body['item']).toMatchObject({ subject: 'Once' })
})

test('what one key was given another may still have', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: other } = await box.call('POST', '/v1/api-keys', { scopes: ['emails:read'] })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'For both' }, 'x\n') })
  for (const key of [box.key, other.key as string]) {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/wait?timeout=0`, undefined, { key })
    expect(body['item']).toMatchObject({ subject: 'For both' })
  }
})

test('a wait looks back two minutes and no further, unless since says so; spam and deleted mail wake nobody', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Old' }, 'x\n') })
  const item = async (query: string): Promise<unknown> =>
    (await box.call('GET', `/v1/identities/${ada.id}/wait?timeout=0${query}`)).body['item']?.subject ?? null
  clock.time += 120_001
  expect(await item('')).toBe(null)
  expect(await item('&since=2026-11-20T10:00:00Z')).toBe('Old')
  expect(await item('&since=2026-11-20T10:00:00.001Z')).toBe(null)
  expect(await item('&since=2026-11-20T10:00:00Z&subject_contains=oLD')).toBe('Old')
  expect(await item('&since=2026-11-20T10:00:00Z&subject_contains=new')).toBe(null)
  const { body: emails } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${emails.data[0].id}`)
  expect(await item('&since=2026-11-20T10:00:00Z')).toBe(null)
})

test('each scope opens its channel, no other', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const open = async (scope: string, channel: string): Promise<number> => {
    const { body: made } = await box.call('POST', '/v1/api-keys', { scopes: [scope] })
    return (await box.call('GET', `/v1/identities/${ada.id}/wait?timeout=0&channel=${channel}`, undefined, { key: made.key }))
      .status
  }
  const table: Record<string, number[]> = {}
  for (const scope of ['messages:read', 'emails:read', 'sms:read', 'identities:read', 'messages:write', 'cards:read']) {
    table[scope] = [await open(scope, 'email'), await open(scope, 'sms'), await open(scope, 'any')]
  }
  expect(table).toEqual({
    'messages:read': [200, 200, 200],
    'emails:read': [200, 403, 200],
    'sms:read': [403, 200, 200],
    'identities:read': [403, 403, 403],
    'messages:write': [403, 403, 403],
    'cards:read': [403, 403, 403],
  })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Not for you' }, 'x\n') })
  const { body: texts } = await box.call('POST', '/v1/api-keys', { scopes: ['sms:read'] })
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/wait?timeout=0`, undefined, { key: texts.key })
  expect(body).toMatchObject({ timed_out: true, item: null, codes: [] })
})

test('a key that is revoked or dies with its identity hears nothing of what comes after', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: made } = await box.call('POST', '/v1/api-keys', { scopes: ['emails:read'] })
  const waiting = box.call('GET', `/v1/identities/${ada.id}/wait?timeout=120`, undefined, { key: made.key })
  await waits(box, 1)
  await box.call('DELETE', `/v1/api-keys/${made.id}`)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Secret' }, 'Your code is 204060\n') })
  const { status, body } = await waiting
  expect([status, body.error]).toMatchObject([401, { type: 'unauthorized', code: 'invalid_key' }])
  expect(JSON.stringify(body)).not.toContain('204060')
})

test('five hundred wait at once and each is told; those who leave are forgotten', async () => {
  const box = await appliance({ PILLARBOX_HTTP__MAX_CONNECTIONS_PER_ADDRESS: '1000' })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const leaving = new AbortController()
  const gone = Array.from({ length: 20 }, () =>
    fetch(`${box.url}/v1/identities/${ada.id}/wait?timeout=60`, {
      headers: { Authorization: `Bearer ${box.key}` },
      signal: leaving.signal,
    }).catch(() => 'gone'),
  )
  await waits(box, 20)
  leaving.abort()
  expect(await Promise.all(gone)).toEqual(Array.from({ length: 20 }, () => 'gone'))
  await waits(box, 0)
  const waiting = Array.from({ length: 500 }, () => box.call('GET', `/v1/identities/${ada.id}/wait?timeout=60&from=sender`))
  await waits(box, 500)
  expect((await box.call('GET', `/v1/identities/${ada.id}`)).status).toBe(200)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'To all' }, 'x\n') })
  const answers = await Promise.all(waiting)
  expect(new Set(answers.map(({ body }) => body['item']?.subject))).toEqual(new Set(['To all']))
  await waits(box, 0)
})

/** A log with one identity, and those who wait for it, over a disk that may be slow. */
async function log(disk: { slow: Promise<void> }) {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-wait-'))
  const file = join(directory, 'pillarbox.db')
  prepare(file, false)
  const database = await SqliteDatabase.open(file, createLog('silent'), { sync: () => disk.slow })
  onTestFinished(async () => {
    await database.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const events = new EventLog(database, systemClock)
  const plan = limitless(database, systemClock)
  const parts = { database, events, clock: systemClock, cursors: new Cursors(Buffer.alloc(32)), plan }
  const trash = new Trash({ ...parts, time: 0 })
  const identities = new Identities({
    ...parts,
    storageOf: new Quota({ ...parts, trash }, { quota: 0, operator: '' }).storageOf,
    domains: { mayUse: () => false, stillUsable: async () => true, unsendable: () => null },
    domain: 'box.test',
    account: '',
  })
  const raw = new RawMessages({ ...parts, objects: undefined })
  const emails = new Emails({ ...parts, identities, trash, raw, hostname: 'box.test' })
  const none = { briefs: async () => [] }
  const waiting = new Waiting({
    ...parts,
    identities,
    emails,
    sms: none,
    admitted: async () => true,
  })
  const caller = callerOf('acct_1', { key_id: 'key_1' })
  const { id } = await identities.create(caller, { name: 'Ada' })
  const made: string[] = []
  /** All in one transaction. */
  const arrive = (...subjects: string[]): Promise<unknown> =>
    database.transaction(async (tx) => {
      for (const subject of subjects) {
        const email = newId('email')
        made.push(email)
        await tx.run(sql`INSERT INTO emails (id, identity_id, thread_id, direction, status, from_address, from_name, to_text, subject, snippet, read, spam,
          automated, labels, size, has_attachments, codes, received_at, created_at, detail, trace, raw_id, body_id)
          VALUES (${email}, ${id}, '', 'inbound', 'received', '', '', '', ${subject}, '', 0, 0, 0, '[]', 1, 0, '[]', '', '', '{}', '', 0, 0)`)
        const data = { id: email, subject, codes: [], links: [] } as unknown as Email
        await events.append(tx, emailReceived, { account_id: 'acct_1', identity_id: id, data })
      }
    })
  /** As when the newest is deleted. */
  const hide = (): Promise<unknown> =>
    database.transaction(async (tx) => {
      await tx.run(sql`DELETE FROM emails WHERE id = ${made.at(-1)!}`)
      await events.hide(tx, made.at(-1)!)
    })
  const wait = (
    filter: { since?: string; timeout: number; subject_contains?: string },
    signal = new AbortController().signal,
    turn: () => Promise<void> = async () => undefined,
    key_id = 'key_1',
  ) => waiting.wait({ ...caller, key_id }, id, { channel: 'any', spam: false, since: undefined, ...filter }, { signal, turn })
  return { arrive, hide, wait, waiting, database, id }
}

test('a message that is being forced to disk as the time runs out is told now or by the next wait', async () => {
  const disk = { slow: Promise.resolve() }
  const { arrive, wait } = await log(disk)
  const since = new Date(Date.now() - 1000).toISOString()
  const { promise, resolve: forced } = Promise.withResolvers<void>()
  disk.slow = promise
  const first = wait({ since, timeout: 1 })
  const writing = arrive('Late')
  const answer = await first
  forced()
  await writing
  // the caller hears of it a little later than those who listen
  await new Promise((resolve) => setTimeout(resolve, 20))
  const next = answer.timed_out ? await wait({ since: answer.since!, timeout: 0 }) : answer
  expect([answer.item, next.item].some((item) => item?.type === 'email' && item.subject === 'Late')).toBe(true)
})

test('a wait that looks through long messages reads none of them', async () => {
  const { arrive, wait, database, id } = await log({ slow: Promise.resolve() })
  const text = 'x'.repeat(500_000)
  await arrive(...Array.from({ length: 60 }, (_, index) => `Letter ${index}`))
  await database.transaction((tx) =>
    tx.run(sql`UPDATE events SET data = json_set(data, '$.body_text', ${text}) WHERE identity_id = ${id}`),
  )
  let read = 0
  const all = database.all.bind(database)
  vi.spyOn(database, 'all').mockImplementation(async (query) => {
    const rows = await all(query)
    read += JSON.stringify(rows).length
    return rows
  })
  expect((await wait({ since: '2000-01-01T00:00:00Z', timeout: 0, subject_contains: 'nothing' })).timed_out).toBe(true)
  expect(read).toBeGreaterThan(60)
  expect(read).toBeLessThan(50_000)
  expect((await wait({ since: '2000-01-01T00:00:00Z', timeout: 0, subject_contains: 'LETTER 59' })).item).toMatchObject({
    subject: 'Letter 59',
  })
})

test('who hung up before the answer was given nothing, and gets it when it asks again', async () => {
  const { arrive, wait } = await log({ slow: Promise.resolve() })
  await arrive('Your code')
  await wait({ timeout: 60 }, AbortSignal.abort())
  expect((await wait({ timeout: 0 })).item).toMatchObject({ subject: 'Your code' })
  expect((await wait({ timeout: 0 })).item).toBe(null)
})

async function waits(box: Appliance, count: number): Promise<void> {
  for (let turn = 0; turn < 1000; turn += 1) {
    if ((await box.app.metrics.text()).includes(`pillarbox_waiting_calls ${count}\n`)) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`There were never ${count} calls waiting`)
}

test('a wait that found nothing never sends its caller back before what was asked for', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const path = `/v1/identities/${ada.id}/wait?timeout=0`
  const since = async (query: string): Promise<string> => (await box.call('GET', `${path}${query}`)).body['since'] as string
  expect(await since('&since=2999-01-01T00:00:00Z')).toBe('2999-01-01T00:00:00.000Z')
  const newest = await since('&since=2000-01-01T00:00:00Z')
  expect(newest).toMatch(/^evt_/)
  expect(await since(`&since=${newest}`)).toBe(newest)
  expect(await since('')).toBe(newest)
})

test('of one key 500 calls wait at once, of an account 1,000; the next is told what to do, and may when others have ended', async () => {
  const { wait, waiting } = await log({ slow: Promise.resolve() })
  const leaving = new AbortController()
  const begin = (count: number, key: string): Promise<unknown>[] =>
    Array.from({ length: count }, () => wait({ timeout: 60 }, leaving.signal, undefined, key))
  const calls = begin(500, 'key_1')
  await vi.waitFor(() => expect(waiting.size).toBe(500), 100_000)
  const refused = { type: 'rate_limited', code: 'too_many_waits', retryAfter: 1 }
  await expect(wait({ timeout: 0 })).rejects.toMatchObject({
    ...refused,
    message: expect.stringMatching(/^500 calls of this key are already /),
  })
  calls.push(...begin(500, 'key_2'))
  await vi.waitFor(() => expect(waiting.size).toBe(1000), 100_000)
  const third = wait({ timeout: 0 }, undefined, undefined, 'key_3')
  await expect(third).rejects.toMatchObject({
    ...refused,
    message: expect.stringMatching(/^1000 calls of this account are already waiting/),
  })
  leaving.abort()
  await Promise.all(calls)
  expect(await wait({ timeout: 0 })).toMatchObject({ timed_out: true })
})

test('a long log is looked through once, beside the event loop', async () => {
  const { arrive, wait, database, id } = await log({ slow: Promise.resolve() })
  await database.transaction((tx) =>
    tx.run(sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      INSERT INTO events (id, type, account_id, identity_id, created_at, data)
      SELECT 'evt_' || i, 'identity.updated', 'acct_1', ${id}, '2020-01-01T00:00:00.000Z', '{}' FROM n`),
  )
  const slow = vi.spyOn(database, 'slow')
  const since = '1970-01-01T00:00:00Z'
  expect(await wait({ since, timeout: 0 })).toMatchObject({ timed_out: true })
  expect(slow).toHaveBeenCalledTimes(1)
  await arrive('Found')
  expect((await wait({ since, timeout: 0 })).item).toMatchObject({ subject: 'Found' })
})

test('a wait that ends goes on when it is its account’s turn', async () => {
  const { wait } = await log({ slow: Promise.resolve() })
  const { promise, resolve: go } = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  let over = false
  const answer = wait({ timeout: 0 }, undefined, () => {
    asked.resolve()
    return promise
  }).finally(() => (over = true))
  await asked.promise
  await new Promise((resolve) => setImmediate(resolve))
  expect(over).toBe(false)
  go()
  expect(await answer).toMatchObject({ timed_out: true })
})

test('others go on while many messages of one transaction are compared with many filters', async () => {
  const { arrive, wait, waiting } = await log({ slow: Promise.resolve() })
  const leaving = new AbortController()
  const calls = Array.from({ length: 480 }, (_, number) =>
    wait({ timeout: 120, subject_contains: `${'a'.repeat(20)}${number}${'a'.repeat(400)}` }, leaving.signal),
  )
  const found = wait({ timeout: 120, subject_contains: 'the last' })
  await vi.waitFor(() => expect(waiting.size).toBe(481), 100_000)
  const [first, ...others] = [...Array(30).fill('a'.repeat(990)), 'The last']
  let turns = 0
  const count = (): void => {
    turns += 1
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  await arrive(first, ...others)
  expect((await found).item).toMatchObject({ subject: 'The last' })
  clearImmediate(counting)
  expect(turns).toBeGreaterThan(20)
  leaving.abort()
  await Promise.all(calls)
})

test('a message that is deleted before the turn of the call is given to nobody', async () => {
  const { arrive, wait, hide, waiting } = await log({ slow: Promise.resolve() })
  const asked = Promise.withResolvers<void>()
  const { promise, resolve: go } = Promise.withResolvers<void>()
  const answer = wait({ timeout: 60 }, undefined, () => {
    asked.resolve()
    return promise
  })
  await vi.waitFor(() => expect(waiting.size).toBe(1), 100_000)
  await arrive('Secret')
  await asked.promise
  await hide()
  // those who listen hear of it a little later
  await new Promise((resolve) => setImmediate(resolve))
  go()
  expect(await answer).toMatchObject({ timed_out: true, item: null })
})
