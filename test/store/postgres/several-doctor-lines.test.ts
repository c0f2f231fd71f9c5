import { chmodSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import { newId } from '../../../src/core/ids.ts'
import { Metrics } from '../../../src/core/metrics.ts'
import { EventLog } from '../../../src/events/log.ts'
import { about, type Check } from '../../../src/ops/doctor/check.ts'
import { Doctor } from '../../../src/ops/doctor/doctor.ts'
import type { DoctorReport } from '../../../src/ops/doctor/model.ts'
import type { PostgresDatabase } from '../../../src/store/postgres/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import type { Appliance } from '../../support/appliance.ts'
import { checkup, linesOf } from '../../support/checkup.ts'
import { folder } from '../../support/folder.ts'
import { movable } from '../../support/held-clock.ts'
import { connect } from '../../support/mcp-clients.ts'
import { run as runProgram } from '../../support/program.ts'
import { quiet } from '../opened.ts'
import { severalBoxes } from './boxes.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
const program = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const schema = fileURLToPath(new URL('../../../src/store/postgres/', import.meta.url))

type Lines = DoctorReport['lines']

const dataOf = (box: Appliance): string => box.env['PILLARBOX_DATA_DIR']!

/** The lines of one box on its machine, where several are on its database. */
const of = ({ lines }: DoctorReport, box: Appliance): Lines => lines.filter((line) => line.box?.endsWith(`(${dataOf(box)})`))

const report = async (box: Appliance): Promise<DoctorReport> => (await box.call<DoctorReport>('GET', '/v1/doctor')).body

/** True for lines whose subject is the same after a restart. */
const isLasting = ({ name }: Lines[number]): boolean => !['ports', 'tls'].includes(name)

const trend = async (box: Appliance): Promise<Lines> => of(await checkup(box), box).filter(({ subject }) => subject === 'trend')

const run = (box: Appliance, query: string): Promise<Record<string, unknown>[]> =>
  postgres().run(box.env['PILLARBOX_DATABASE__URL']!.split('/').at(-1)!, query)

/** What was told of the permissions of data directories, oldest first. */
async function changes(box: Appliance): Promise<Record<string, unknown>[]> {
  const { body } = await box.call('GET', '/v1/events?types=doctor.changed&limit=100')
  return body.data
    .map(({ data }) => data as Record<string, unknown>)
    .filter(({ name, subject }) => name === 'permissions' && String(subject).endsWith('data'))
    .toReversed()
}

test('each box has lines of what is on its machine, and all have one of what is theirs', async () => {
  const [one, other] = await severalBoxes(postgres())
  await checkup(one)
  const { lines } = await checkup(other)
  const shared = lines.filter(({ box }) => box === undefined)
  expect(new Set(shared.map(({ name }) => name))).toEqual(
    new Set([
      'mx',
      'spf',
      'dkim',
      'dmarc',
      'mta_sts',
      'tls_rpt',
      'sending',
      'store',
      'database',
      'boxes',
      'queue',
      'webhooks',
      'operator_names',
      'second_factor',
    ]),
  )
  expect(shared.filter(({ name }) => name === 'store')).toMatchObject([{ subject: 'integrity' }])
  for (const box of [one, other]) {
    const own = of({ lines } as DoctorReport, box)
    expect(own.map(({ name, subject }) => `${name} ${subject}`)).toEqual(
      expect.arrayContaining([
        `permissions ${dataOf(box)}`,
        'clock now',
        'store writing',
        `disk ${dataOf(box)}`,
        'bootstrap_key settings',
      ]),
    )
    expect(own.find(({ name }) => name === 'ports')).toMatchObject({ subject: `http ${new URL(box.url).host}`, status: 'pass' })
  }
  expect(lines).toHaveLength(
    shared.length + of({ lines } as DoctorReport, one).length + of({ lines } as DoctorReport, other).length,
  )
})

test('a change at one box is one event, whichever box looks next', async () => {
  const [one, other] = await severalBoxes(postgres())
  const boxes = [one, other]
  for (const box of boxes) await checkup(box)
  chmodSync(dataOf(one), 0o755)
  for (const box of [...boxes, ...boxes]) await checkup(box)
  const told = {
    name: 'permissions',
    subject: dataOf(one),
    status: 'fail',
    before: 'pass',
    box: expect.stringContaining(dataOf(one)),
  }
  expect(await changes(other)).toMatchObject([told])
  chmodSync(dataOf(one), 0o700)
  for (const box of [...boxes, ...boxes]) await checkup(box)
  expect(await changes(one)).toMatchObject([told, { ...told, status: 'pass', before: 'fail' }])
})

test('the lines of a box that was stopped are left out until it runs again, and end a day later', async () => {
  const clock = movable()
  const [one, other] = await severalBoxes(postgres(), 2, {}, clock)
  await checkup(one)
  chmodSync(dataOf(other), 0o755)
  const before = of(await checkup(other), other).filter(isLasting)
  await other.app.stop()
  expect(of(await report(one), other)).toEqual([])
  clock.ahead += 3_600_000
  await checkup(one)
  await other.restart()
  const again = of(await checkup(other), other).filter(isLasting)
  expect(again.map(({ subject, since }) => [subject, since])).toEqual(before.map(({ subject, since }) => [subject, since]))
  const told = { subject: dataOf(other), status: 'fail', before: null }
  expect(await changes(one)).toMatchObject([told])
  await other.app.stop()
  clock.ahead += 25 * 3_600_000
  await checkup(one)
  expect(await changes(one)).toMatchObject([
    told,
    { subject: dataOf(other), status: 'pass', before: 'fail', message: 'The box has not run for a day.' },
  ])
  const stored = await run(one, 'SELECT DISTINCT box FROM doctor_lines ORDER BY box')
  expect(stored.map(({ box }) => box)).toEqual(['', expect.stringContaining(dataOf(one))])
})

test('a box that has made no checks makes them when it is asked, whatever the others have found', async () => {
  const [one, other] = await severalBoxes(postgres())
  await checkup(one)
  expect(of(await report(other), other).length).toBeGreaterThan(10)
})

test('the command prints of which machine a line is, and the tool says it', async () => {
  const [one, other] = await severalBoxes(postgres())
  chmodSync(dataOf(other), 0o755)
  await checkup(other)
  const { output } = await runProgram(process.execPath, [program, 'doctor'], { env: one.env, cwd: one.directory })
  const [ofOther, ofOne] = [other, one].map((box) => `${hostname()} (${dataOf(box)}): ${dataOf(box)}  `)
  expect(output.toString()).toContain(`FAIL  permissions     ${ofOther}`)
  expect(output.toString()).toContain(`PASS  permissions     ${ofOne}`)
  expect(output.toString()).toMatch(/^PASS  queue +all  The queue is empty\.$/m)
  const tools = await connect('2026-07-28', `${one.url}/mcp`, one.key)
  expect((await tools.call('get_doctor')).text).toContain(`fail permissions ${hostname()} (${dataOf(other)}): ${dataOf(other)}`)
})

test('a backup that one box has is one of all', async () => {
  const directory = folder()
  const passphrase = join(folder(), 'passphrase')
  writeFileSync(passphrase, 'a long and quiet evening', { mode: 0o600 })
  const makesBackups = { PILLARBOX_BACKUP__DIRECTORY: directory, PILLARBOX_BACKUP__PASSPHRASE_FILE: passphrase }
  const [one, other] = await severalBoxes(postgres(), 2, (number) => (number === 0 ? makesBackups : {}))
  expect((await linesOf(other, 'backup')).map(({ message }) => message)).toEqual(['No backup directory is configured.'])
  await one.call('POST', '/v1/backups')
  await expect
    .poll(async () => of(await checkup(one), one).find(({ name }) => name === 'backup'))
    .toMatchObject({ status: 'pass' })
  expect((await linesOf(other, 'backup')).map(({ box, status }) => [box, status])).toEqual([
    [expect.stringContaining(dataOf(one)), 'pass'],
  ])
})

test('how fast a disk fills is measured for each machine', async () => {
  const [one, other] = await severalBoxes(postgres())
  await checkup(one)
  const yesterday = new Date(Date.now() - 24 * 3_600_000).toISOString()
  await run(one, `INSERT INTO doctor_free (box, at, free) SELECT box, '${yesterday}', free + 1000000 FROM doctor_free`)
  expect(await trend(one)).toHaveLength(1)
  expect(await trend(other)).toEqual([])
})

test('that one box has sent mail does not say that another one can', async () => {
  const env = {
    PILLARBOX_DOCTOR__ADDRESSES: '192.0.2.25',
    PILLARBOX_DOCTOR__PROBE_DOMAIN: 'far.test',
    PILLARBOX_OUTBOUND__MODE: 'direct',
  }
  const [one] = await severalBoxes(postgres(), 2, env)
  await run(
    one,
    `INSERT INTO deliveries_queue (id, kind, lane, account_id, state, load, attempts, due_at, created_at, ended_at)
      VALUES ('delivery', 'email', 'near.test', 'account', 'done', '{}', 1, '${new Date().toISOString()}', '${new Date().toISOString()}', '${new Date().toISOString()}')`,
  )
  expect(of(await checkup(one), one).filter(({ name }) => name === 'port25')).toMatchObject([{ status: 'fail' }])
})

interface DoctorOfBox {
  doctor: Doctor
  database: PostgresDatabase
  metrics: Metrics
  /** The checks that it has run. */
  ran: string[]
}

describe('by themselves', () => {
  let target: PostgresTarget
  let databases = 0
  beforeEach(async () => {
    target = await emptyDatabase(postgres(), `doctor_lines_${(databases += 1)}`)
    await preparePostgres(target, false)
  })

  /** A doctor with a check of the machine and one of what all have that finds a fault; it notes each run. */
  async function doctorOf(name: string, shared: boolean): Promise<DoctorOfBox> {
    const { database } = await opened(target, { shared, heartbeat, name })
    const ran: string[] = []
    const metrics = new Metrics()
    const check = (subject: string, ofAll: boolean): Check => ({
      name: subject,
      pace: 'often',
      shared: ofAll,
      run: async () => {
        ran.push(subject)
        return [about(subject, 'it').fail('It is broken.', 'mend it')]
      },
    })
    const checks = [check('disk', false), check('queue', true)]
    const doctor = new Doctor({
      database,
      clock: systemClock,
      log: quiet,
      metrics,
      account: newId('acct'),
      events: new EventLog(database, systemClock),
      dataDirectory: '/data',
      checks: () => checks,
    })
    return { doctor, database, ran, metrics }
  }

  const stored = (): Promise<unknown[]> =>
    postgres().run(target.database, 'SELECT box, name FROM doctor_lines ORDER BY name, box')
  const times = async (): Promise<unknown[]> =>
    (await postgres().run(target.database, 'SELECT since FROM doctor_lines ORDER BY name')).map((row) => row['since'])
  const told = async (): Promise<number> => (await postgres().run(target.database, 'SELECT 1 FROM events')).length

  test('what all have is checked by the box that leads, and a machine by its own', async () => {
    const [one, two] = [await doctorOf('one', true), await doctorOf('two', true)]
    await one.doctor.runDue(true)
    await two.doctor.runDue(false)
    expect([one.ran, two.ran]).toEqual([['disk', 'queue'], ['disk']])
    expect(await stored()).toEqual([
      { box: 'one', name: 'disk' },
      { box: 'two', name: 'disk' },
      { box: '', name: 'queue' },
    ])
    // the other has not made the checks of all yet
    await two.doctor.runDue(true)
    expect(two.ran).toEqual(['disk', 'queue'])
    expect(await told()).toBe(3)
    // metrics have the lines of the machine, and those of all
    expect((await two.metrics.text()).match(/^pillarbox_doctor_lines.*/gm)?.toSorted()).toEqual([
      'pillarbox_doctor_lines{name="disk",status="fail"} 1',
      'pillarbox_doctor_lines{name="queue",status="fail"} 1',
    ])
  })

  test('the last lines of a box that was killed are told as long as it is, and those of another that ended by itself are not', async () => {
    const boxes = [await doctorOf('one', true), await doctorOf('killed', true), await doctorOf('stopped', true)]
    for (const { doctor } of boxes) await doctor.run()
    const [one, ...others] = boxes
    for (const { database } of others) await database.close()
    await postgres().run(
      target.database,
      `INSERT INTO lost_boxes (name, seen_at) VALUES ('killed', floor(extract(epoch FROM clock_timestamp()) * 1000))`,
    )
    expect((await one!.doctor.report()).lines.map(({ box }) => box)).toEqual(['killed', 'one', undefined])
  })

  test('a box that becomes one of several, and the only one again, keeps its lines', async () => {
    const alone = await doctorOf('one', false)
    const { lines } = await alone.doctor.run()
    expect(lines.map(({ name, box }) => [name, box])).toEqual([
      ['disk', undefined],
      ['queue', undefined],
    ])
    const before = await times()
    await alone.database.close()
    const several = await doctorOf('one', true)
    expect((await several.doctor.run()).lines.map(({ name, box }) => [name, box])).toEqual([
      ['disk', 'one'],
      ['queue', undefined],
    ])
    expect(await times()).toEqual(before)
    await several.database.close()
    const again = await doctorOf('one', false)
    expect((await again.doctor.run()).lines.map(({ name, box }) => [name, box])).toEqual([
      ['disk', undefined],
      ['queue', undefined],
    ])
    expect(await times()).toEqual(before)
    expect(await told()).toBe(2)
  })

  test('after the upgrade the lines of before are those of all boxes, until one takes over those of its machine', async () => {
    const older = await emptyDatabase(postgres(), `doctor_lines_${(databases += 1)}`)
    const former = folder()
    mkdirSync(join(former, 'migrations'))
    for (const name of readdirSync(schema, { recursive: true, encoding: 'utf8' }))
      if (name === 'baseline.sql' || (/^migrations.\d/.test(name) && name < 'migrations/0069'))
        copyFileSync(join(schema, name), join(former, name))
    await preparePostgres(older, false, { folder: `${former}/` })
    const at = '2026-11-01T00:00:00.000Z'
    for (const name of ['disk', 'queue'])
      await postgres().run(
        older.database,
        `INSERT INTO doctor_lines (name, subject, check_name, place, status, message, since, checked_at)
          VALUES ('${name}', 'it', '${name}', 1, 'fail', 'It is broken.', '${at}', '${at}')`,
      )
    await postgres().run(older.database, `INSERT INTO doctor_free (at, free) VALUES ('${at}', 4096)`)
    await preparePostgres(older, true)
    target = older
    const { doctor } = await doctorOf('one', true)
    const { lines } = await doctor.run()
    expect(lines.map(({ name, box, since }) => [name, box, since])).toEqual([
      ['disk', 'one', at],
      ['queue', undefined, at],
    ])
    expect(await told()).toBe(0)
    expect(await postgres().run(older.database, 'SELECT box, at, free FROM doctor_free')).toEqual([{ box: '', at, free: '4096' }])
  })
})
