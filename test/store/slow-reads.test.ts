import { expect, onTestFinished, test, vi } from 'vitest'
import { sql, type Sql } from '../../src/store/database.ts'
import { SqliteThread } from '../../src/store/sqlite/thread.ts'
import { folder } from '../support/folder.ts'
import { openedWithTable } from './opened.ts'

/** A read that counts so far. */
function counting(rows: number): Sql {
  return sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows}) SELECT count(*) AS n FROM n`
}

test('one account’s slow reads do not come before another’s first', async () => {
  const { database } = await openedWithTable(folder())
  onTestFinished(() => database.close())
  const order: string[] = []
  const read = (account: string, query: Sql): Promise<unknown> =>
    database.slow(query, 60_000, account).then(() => order.push(account))
  const flood = Array.from({ length: 40 }, () => read('acct_flood', counting(200_000)))
  await Promise.all([read('acct_one', counting(1)), read('acct_two', counting(1))])
  expect(order.filter((account) => account === 'acct_flood').length).toBeLessThan(30)
  await Promise.all(flood)
  expect(order).toHaveLength(42)
})

test('an account whose read is given up has its next one answered', async () => {
  const { database } = await openedWithTable(folder())
  onTestFinished(() => database.close())
  const [late, behind, other] = await Promise.allSettled([
    database.slow(counting(3_000_000), 20, 'acct_one'),
    database.slow(counting(2), 60_000, 'acct_one'),
    database.slow(counting(3), 60_000, 'acct_two'),
  ])
  expect(late).toMatchObject({
    status: 'rejected',
    reason: { code: 'too_slow', retryAfter: 5, message: 'The search took too long. Narrow it down, or try again later.' },
  })
  expect(behind).toMatchObject({ status: 'fulfilled', value: [{ n: 2 }] })
  expect(other).toMatchObject({ status: 'fulfilled', value: [{ n: 3 }] })
})

test('a read that waits past its deadline for those of its own account is refused without being made', async () => {
  const { database } = await openedWithTable(folder())
  onTestFinished(() => database.close())
  const held = database.slow(counting(3_000_000), 60_000, 'acct_one')
  await expect(database.slow(counting(1), 1, 'acct_one')).rejects.toMatchObject({
    type: 'rate_limited',
    code: 'too_many_waiting',
    retryAfter: 5,
    message: 'The search waited too long for others of this account. Make fewer at once, and try again later.',
  })
  expect(await held).toEqual([{ n: 3_000_000 }])
})

test('a slow read that the disk fails is a fault of the store, which may be tried again', async () => {
  const { database } = await openedWithTable(folder())
  onTestFinished(() => database.close())
  // SQLITE_IOERR_READ
  vi.spyOn(SqliteThread.prototype, 'read').mockRejectedValue(Object.assign(new Error('disk I/O error'), { errcode: 266 }))
  await expect(database.slow(counting(2), 60_000)).rejects.toMatchObject({ code: 'storage_unavailable', retryAfter: 5 })
})
