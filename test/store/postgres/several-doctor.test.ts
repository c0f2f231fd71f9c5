import { beforeEach, expect, test } from 'vitest'
import { otherBoxes } from '../../../src/ops/doctor/checks/boxes.ts'
import type { Line } from '../../../src/ops/doctor/model.ts'
import type { PostgresDatabase } from '../../../src/store/postgres/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import type { Appliance } from '../../support/appliance.ts'
import { linesOf } from '../../support/checkup.ts'
import { child } from '../../support/child.ts'
import { movable } from '../../support/held-clock.ts'
import { severalBoxes } from './boxes.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `several_doctor_${(count += 1)}`)
  await preparePostgres(target, false)
})

const boxAt = async (name: string): Promise<PostgresDatabase> =>
  (await opened(target, { shared: true, heartbeat, name })).database

const lines = (database: PostgresDatabase): Promise<Line[]> => otherBoxes({ database }).run(true)

const warnings = async (database: PostgresDatabase): Promise<string[]> =>
  (await lines(database)).filter(({ status }) => status !== 'pass').map(({ subject, message }) => `${subject}: ${message}`)

const ofBoxes = async (box: Appliance): Promise<Line[]> =>
  (await linesOf(box, 'boxes')).filter(({ subject }) => subject.startsWith('settings'))

test('settings that differ are named, with the box, and without their values', async () => {
  const [one, other] = await severalBoxes(postgres(), 2, (number) => ({
    PILLARBOX_HTTP__RATE_LIMIT: String(70 + number),
    PILLARBOX_METRICS__TOKEN: `token-number-${number}-of-metrics`,
    PILLARBOX_LOG__LEVEL: number === 0 ? 'info' : 'debug',
    PILLARBOX_SMTP__SIZE: '7 MiB',
  }))
  const found = await ofBoxes(one)
  expect(found).toHaveLength(1)
  expect(found[0]).toMatchObject({ status: 'warn', message: expect.stringMatching(/: http\.rate_limit, metrics\.token\.$/) })
  for (const { env } of [one, other])
    expect(`${found[0]!.subject} ${found[0]!.message}`).toContain(`(${env['PILLARBOX_DATA_DIR']!})`)
  // it is the same wherever it is looked at
  expect(await ofBoxes(other)).toMatchObject([{ subject: found[0]!.subject, message: found[0]!.message }])
  const stored = await postgres().run(one.env['PILLARBOX_DATABASE__URL']!.split('/').at(-1)!, 'SELECT report FROM boxes')
  expect(stored).toHaveLength(2)
  expect(JSON.stringify(stored)).not.toMatch(/of-metrics|7340032/)
  // the remedy
  other.env['PILLARBOX_HTTP__RATE_LIMIT'] = '70'
  other.env['PILLARBOX_METRICS__TOKEN'] = 'token-number-0-of-metrics'
  await other.app.reread()
  await expect.poll(async () => (await ofBoxes(one)).map(({ status }) => status)).toEqual(['pass'])
})

test('a box whose clock is off is named', { timeout: 60_000 }, async () => {
  const clock = movable()
  const { database: one } = await opened(target, { shared: true, heartbeat, name: 'one (/data)' })
  await opened(target, { shared: true, heartbeat, name: 'two (/data)', clock })
  expect(await warnings(one)).toEqual([])
  clock.ahead = -12_000
  await expect
    .poll(() => warnings(one))
    .toEqual([
      expect.stringMatching(/^clocks: That of two \(\/data\) is at least 1[12]\.\d s behind the clock of the database server\.$/),
    ])
  clock.ahead = 40_000
  await expect
    .poll(async () => (await lines(one)).find(({ subject }) => subject === 'clocks'))
    .toMatchObject({
      status: 'fail',
      message: expect.stringMatching(/^That of two \(\/data\) is at least (?:39|40)\.\d s ahead of/),
    })
  clock.ahead = 0
  await expect.poll(() => warnings(one)).toEqual([])
})

test('boxes of different versions are named', async () => {
  const one = await boxAt('one (/data)')
  const two = await boxAt('two (/data)')
  one.run.describe({ version: '2.0.0', settings: {} })
  two.run.describe({ version: '2.0.0', settings: {} })
  await expect
    .poll(async () => (await lines(one)).filter(({ subject }) => subject === 'versions'))
    .toMatchObject([{ status: 'pass' }])
  two.run.describe({ version: '2.0.1', settings: {} })
  await expect
    .poll(() => warnings(one))
    .toEqual([expect.stringMatching(/^versions: They differ: 2\.0\.[01] at .* 2\.0\.[01] at /)])
})

test('a box that did nothing for seconds is named, and one that was killed, until it runs again', async () => {
  const one = await boxAt('one (/data)')
  const two = child('store/postgres/children/stall.ts', [postgres().url(target.database), 'two (/data)', '3300'])
  await two.until(2)
  await expect
    .poll(() => warnings(one))
    .toEqual([expect.stringMatching(/^two \(\/data\): It did nothing for at least [23] seconds, \d+ seconds? ago/)])
  await two.kill()
  await expect
    .poll(() => warnings(one))
    .toEqual([
      expect.stringMatching(
        /^two \(\/data\): It has not ended by itself, and was last seen \d+ seconds ago: it was killed, hangs/,
      ),
    ])
  const again = await boxAt('two (/data)')
  expect(await warnings(one)).toEqual([])
  await again.close()
  // it has ended by itself
  expect(await warnings(one)).toEqual([])
})

test('a box that has not been heard for a while is named before the others do its work', async () => {
  const one = await boxAt('one (/data)')
  await postgres().run(
    target.database,
    `INSERT INTO boxes (run_id, name, seen_at) VALUES ('other', 'two (/data)', floor(extract(epoch FROM clock_timestamp()) * 1000) + 3600000)`,
  )
  expect(await warnings(one)).toEqual([])
  await one.close()
  const { database } = await opened(target, { shared: true, name: 'one (/data)' })
  await postgres().run(target.database, `UPDATE boxes SET seen_at = seen_at - 3615000 WHERE run_id = 'other'`)
  expect(await warnings(database)).toEqual([
    expect.stringMatching(/^others: 1 other box uses the database; that of two \(\/data\) has not been heard for 1[56] seconds/),
  ])
})
