import { expect, onTestFinished, test } from 'vitest'
import { sql } from '../../src/store/database.ts'
import { folder } from '../support/folder.ts'
import { openedWithTable } from './opened.ts'

test('work that changes something outside of its transaction is told by its second run', async () => {
  const { database } = await openedWithTable(folder(), { twice: true })
  onTestFinished(() => database.close())
  const outside: string[] = []
  const notified: number[] = []
  const takenBack: number[] = []
  const returned = await database.transaction(async (tx) => {
    const run = outside.push('not taken back')
    await tx.run(sql`INSERT INTO t (v) VALUES (${run})`)
    tx.afterCommit(() => notified.push(run))
    tx.afterRollback(() => takenBack.push(run))
    return run
  })
  expect(returned).toBe(2)
  expect(await database.all(sql`SELECT * FROM t`)).toEqual([{ id: 1, v: 2 }])
  await expect.poll(() => notified).toEqual([2])
  expect(takenBack).toEqual([1])
})
