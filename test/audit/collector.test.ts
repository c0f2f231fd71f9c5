import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { verifyAuditOf } from '../../src/audit/verify.ts'
import { Collector } from '../../src/audit/collector.ts'
import { minute } from '../../src/core/clock.ts'
import { sql } from '../../src/store/database.ts'
import { HeldClock } from '../support/held-clock.ts'
import { quiet } from '../store/opened.ts'
import { entry, openLog, type Opened } from './rows.ts'

let clock: HeldClock
let opened: Opened
let collector: Collector

beforeEach(async () => {
  clock = new HeldClock()
  opened = await openLog(clock)
  collector = new Collector({ ...opened, clock, log: quiet, rows: opened.log })
  const { database } = opened
  onTestFinished(async () => {
    await collector.stop()
    await database.close()
  })
})

const rows = (): Promise<{ actor: string; action: string; target: string | null; count: number }[]> =>
  opened.database.all(sql`SELECT actor, action, target, count FROM audit ORDER BY seq`)

test('a read is on disk within about a second, without a call', async () => {
  collector.add(entry())
  expect(await rows()).toEqual([])
  for (let tries = 0; tries < 60 && (await rows()).length === 0; tries += 1) await sleep(50)
  expect(await rows()).toMatchObject([{ action: 'email.read', target: 'email_1', count: 1 }])
})

test('many reads are one transaction', async () => {
  const transaction = vi.spyOn(opened.database, 'transaction')
  for (let n = 0; n < 100; n += 1) collector.add(entry({ target: `email_${n}` }))
  await collector.flush()
  expect(transaction).toHaveBeenCalledTimes(1)
  expect(await rows()).toHaveLength(100)
})

test('what is repeated within a minute has one more row, with the number of repetitions', async () => {
  for (let n = 0; n < 7; n += 1) collector.add(entry())
  await collector.flush()
  expect(await rows()).toMatchObject([{ count: 1 }])
  clock.advance(minute - 1)
  collector.add(entry())
  await collector.flush()
  expect(await rows()).toHaveLength(1)
  clock.advance(1)
  await collector.flush()
  expect(await rows()).toMatchObject([{ count: 1 }, { target: 'email_1', count: 7 }])
  // the next one is a read of its own
  collector.add(entry())
  await collector.flush()
  expect((await rows()).map(({ count }) => count)).toEqual([1, 7, 1])
})

test('reads by another key, from elsewhere, or of something else are others', async () => {
  const others = [{}, { actor: 'key_2' }, { address: '192.0.2.8' }, { target: 'email_2' }, { action: 'thread.read' }]
  for (const other of others) collector.add(entry(other))
  await collector.flush()
  expect(await rows()).toHaveLength(others.length)
})

test('a flood has a bounded number of rows, and what is above is counted', async () => {
  for (let n = 0; n < 5000; n += 1) collector.add(entry({ target: `email_${n}` }))
  await collector.flush()
  const first = await rows()
  expect(first).toHaveLength(1000)
  clock.advance(minute)
  await collector.flush()
  const later = await rows()
  expect(later.slice(1000)).toEqual([{ actor: 'key_1', action: 'email.read', target: null, count: 4000 }])
  // after a minute there is room for some
  for (let n = 5000; n < 6000; n += 1) collector.add(entry({ target: `email_${n}` }))
  clock.advance(minute)
  await collector.flush()
  const all = await rows()
  expect(all.reduce((sum, { count }) => sum + count, 0)).toBe(6000)
  expect(all).toHaveLength(1001 + 30 + 1)
})

test('the flood of one key leaves the rows of others; that of many is bounded for the account', async () => {
  for (let n = 0; n < 5000; n += 1) collector.add(entry({ target: `email_${n}` }))
  collector.add(entry({ actor: 'key_2', target: 'email_1' }))
  collector.add(entry({ account_id: 'acct_2', actor: 'key_3' }))
  await collector.flush()
  expect((await rows()).filter(({ actor }) => actor !== 'key_1')).toMatchObject([{ actor: 'key_2' }, { actor: 'key_3' }])
  for (let n = 0; n < 20_000; n += 1) collector.add(entry({ actor: `key_${n % 100}`, target: `email_${n}` }))
  clock.advance(minute)
  await collector.flush()
  const all = await rows()
  expect(all.length).toBeLessThan(5000 + 50)
  expect(all.reduce((sum, { count }) => sum + count, 0)).toBe(25_002)
})

test('failed sign-ins by strangers do not use up the rows of the account', async () => {
  for (let n = 0; n < 9000; n += 1)
    collector.add(entry({ actor: 'anonymous', action: 'sign_in.failed', address: `192.0.2.${n}` }))
  collector.add(entry())
  await collector.flush()
  expect((await rows()).filter(({ actor }) => actor === 'key_1')).toHaveLength(1)
})

test('a stop writes all there is, repetitions and counts too', async () => {
  for (let n = 0; n < 1500; n += 1) collector.add(entry({ target: `email_${n}` }))
  for (let n = 0; n < 3; n += 1) collector.add(entry({ target: 'email_0' }))
  await collector.stop()
  const all = await rows()
  expect(all.reduce((sum, { count }) => sum + count, 0)).toBe(1503)
  expect(collector.size).toBe(0)
  await opened.database.close()
  expect(verifyAuditOf(opened.file)).toMatchObject({ valid: true, rows: all.length })
})

test('what cannot be written now is written later, in its order, once', async () => {
  const failing = vi.spyOn(opened.database, 'transaction').mockRejectedValueOnce(new Error('no space'))
  for (let n = 0; n < 3; n += 1) collector.add(entry({ target: `email_${n}` }))
  await collector.flush()
  expect(await rows()).toEqual([])
  failing.mockRestore()
  collector.add(entry({ target: 'email_3' }))
  await Promise.all([collector.flush(), collector.flush()])
  expect((await rows()).map(({ target }) => target)).toEqual(['email_0', 'email_1', 'email_2', 'email_3'])
})
