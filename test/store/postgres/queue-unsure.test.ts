import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { sql, type Transaction } from '../../../src/store/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { allAttempts } from '../../support/attempts.ts'
import { type CuttingProxy, cuttingProxy } from './cutting-proxy.ts'
import { QueueOfBox, type TestLoad } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
let target: PostgresTarget
let proxy: CuttingProxy
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `unsure_${(count += 1)}`)
  await preparePostgres(target, false)
  await postgres().run(target.database, 'CREATE TABLE settled (text TEXT NOT NULL)')
  proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
})

async function started(): Promise<QueueOfBox> {
  const { database } = await opened({ ...target, port: proxy.port })
  const box = new QueueOfBox(database)
  await box.queue.start()
  onTestFinished(() => box.queue.stop())
  return box
}

const attempts = (): Promise<unknown[]> =>
  postgres().run(target.database, `SELECT number::int, outcome FROM ${allAttempts} ORDER BY number`)

test('a delivery whose claim was stored without an answer is attempted', async () => {
  const box = await started()
  let cut = false
  Object.assign(box, {
    async begin() {
      if (!cut) proxy.cutAt('COMMIT', 'after')
      cut = true
    },
  })
  await box.enqueue('first', 'a')
  await expect.poll(() => box.settled).toEqual([['first', 'done']])
  expect(box.made).toEqual(['first 2'])
  expect(await attempts()).toEqual([
    { number: 1, outcome: 'interrupted' },
    { number: 2, outcome: 'done' },
  ])
})

test('a result that was stored without an answer is stored once', async () => {
  const box = await started()
  let cut = false
  Object.assign(box, {
    async settle(tx: Transaction, { text }: TestLoad) {
      if (!cut) proxy.cutAt('COMMIT', 'after')
      cut = true
      await tx.run(sql`INSERT INTO settled (text) VALUES (${text})`)
    },
  })
  await box.enqueue('first', 'a')
  await expect.poll(() => cut).toBe(true)
  await proxy.cut()
  await expect.poll(() => box.queue.work).toBeUndefined()
  await box.enqueue('second', 'b')
  await expect
    .poll(() => postgres().run(target.database, 'SELECT text FROM settled'))
    .toEqual([{ text: 'first' }, { text: 'second' }])
  expect(await attempts()).toEqual([
    { number: 1, outcome: 'done' },
    { number: 1, outcome: 'done' },
  ])
})
