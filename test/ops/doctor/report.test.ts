import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../support/open-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { keyHash, newKey } from '../../../src/accounts/secret.ts'
import { Fault, storageFull } from '../../../src/core/fault.ts'
import { newId } from '../../../src/core/ids.ts'
import { createLog } from '../../../src/core/log.ts'
import { Metrics } from '../../../src/core/metrics.ts'
import { about, type Check } from '../../../src/ops/doctor/check.ts'
import { storeWrites } from '../../../src/ops/doctor/checks/store.ts'
import { Doctor } from '../../../src/ops/doctor/doctor.ts'
import type { DoctorReport } from '../../../src/ops/doctor/model.ts'
import { EventLog } from '../../../src/events/log.ts'
import { scopes } from '../../../src/core/scopes.ts'
import { checkup, patient } from '../../support/checkup.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { WebhookSink } from '../../support/webhook-sink.ts'
import { folder } from '../../support/folder.ts'
import { opened } from '../../store/opened.ts'

test('what was seen last is answered without another look, with the time each line came to its state', async () => {
  const { box, clock } = await patient()
  const first = await checkup(box)
  clock.ahead += 60_000
  box.dns.queries.length = 0
  const { body: kept } = await box.call<DoctorReport>('GET', '/v1/doctor')
  expect(kept).toEqual(first)
  expect(box.dns.queries).toEqual([])
  const data = box.env['PILLARBOX_DATA_DIR']!
  chmodSync(data, 0o755)
  const after = await checkup(box)
  const of = (report: DoctorReport): DoctorReport['lines'][number] => report.lines.find(({ subject }) => subject === data)!
  expect(of(after).since > of(first).since).toBe(true)
  const [same, before] = [after, first].map((report) => report.lines.find(({ name }) => name === 'clock')!)
  expect(same!.since).toBe(before!.since)
  expect(same!.checked_at > before!.checked_at).toBe(true)
  chmodSync(data, 0o700)
})

test('whoever asks first has it look', async () => {
  const { box } = await patient()
  const { body } = await box.call<DoctorReport>('GET', '/v1/doctor')
  expect(body.lines.length).toBeGreaterThan(15)
  expect(body.checked_at).not.toBeNull()
})

test('each change of a line is an event to the operator, and what stays as it is is none', async () => {
  const sink = await WebhookSink.start()
  const { box } = await patient({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  await checkup(box)
  await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['doctor.changed'] })
  const data = box.env['PILLARBOX_DATA_DIR']!
  chmodSync(data, 0o755)
  await checkup(box)
  await checkup(box)
  chmodSync(data, 0o700)
  await checkup(box)
  const told = (): unknown[] => sink.received.map(({ body }) => body.data).filter(({ name }) => name === 'permissions')
  await box.settled()
  expect(told()).toMatchObject([
    { name: 'permissions', subject: data, status: 'fail', before: 'pass', fix: `chmod 700 ${data}` },
    { name: 'permissions', subject: data, status: 'pass', before: 'fail', fix: null },
  ])
  expect(sink.received.map(({ body }) => body.identity_id)).toEqual(sink.received.map(() => null))
  const { body: feed } = await box.call('GET', `/v1/events?types=doctor.changed&limit=${sink.received.length}`)
  expect(new Set(feed.data.map(({ id }) => id))).toEqual(new Set(sink.received.map(({ body }) => body.id)))
})

test('only the operator may ask', async () => {
  const { box } = await patient()
  const key = newKey()
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'), { timeout: 60_000 })
  database
    .prepare('INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)')
    .run(newId('key'), newId('acct'), 'foreign', JSON.stringify(scopes), key.slice(0, 12), keyHash(key), new Date().toISOString())
  database.close()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const method of ['GET', 'POST']) {
    const { status, body } = await box.call(method, '/v1/doctor', undefined, { key })
    expect([status, body.error['code']]).toEqual([403, 'operator_only'])
  }
})

test('a disk that takes nothing new is looked at all the same, and said', async () => {
  const { box } = await patient({ PILLARBOX_MIN_FREE: '900 TiB' })
  const { body: refused } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  expect(refused.error['code']).toBe('storage_full')
  const { lines } = await checkup(box)
  expect(lines.find(({ name }) => name === 'disk')).toMatchObject({ status: 'fail', message: expect.stringContaining('900 TiB') })
})

test('the figures count lines by check and status', async () => {
  const { box } = await patient({ PILLARBOX_METRICS__TOKEN: 'metrics-token-of-20-chars' })
  await checkup(box)
  const answer = await fetch(`${box.url}/metrics`, { headers: { Authorization: 'Bearer metrics-token-of-20-chars' } })
  expect(await answer.text()).toMatch(/^pillarbox_doctor_lines\{name="ptr",status="pass"\} 1$/m)
})

test.each([
  [storageFull(undefined), /^Free space or enlarge the disk/],
  [
    new Fault('internal_error', 'Held.', { code: 'storage_busy' }),
    /^Stop the program that has it open.*fuser -v \S+\/pillarbox\.db$/,
  ],
  [new Fault('internal_error', 'The disk failed.', { code: 'storage_failed' }), /dmesg.*restart the box/],
])(
  'a store that takes nothing (%s) comes with what mends that, and a restart only where nothing else does',
  async (error, fix) => {
    const database = { probe: () => Promise.reject(error), damage: async () => null }
    const [line] = await storeWrites({ database, settings: { data_dir: folder() } }).run(true)
    expect(line).toMatchObject({ name: 'store', subject: 'writing', status: 'fail', fix: expect.stringMatching(fix) })
    expect(line!.fix!.includes('restart')).toBe(fix.source.includes('restart'))
  },
)

test('checks run by themselves when it is their turn; one that breaks says so, and leaves what was known', async () => {
  const { database } = await opened(folder())
  onTestFinished(() => database.close())
  const clock = new HeldClock()
  let runs = 0
  let broken = false
  const line = about('disk', '/data')
  const check: Check = {
    name: 'disk',
    pace: 'often',
    shared: false,
    run: async () => {
      runs += 1
      if (broken) throw new Error('a bug')
      return [line.fail('It is full.', 'rm')]
    },
  }
  const log = createLog('silent')
  const parts = {
    database,
    clock,
    log,
    dataDirectory: '/data',
    metrics: new Metrics(),
    account: newId('acct'),
    events: new EventLog(database, clock),
  }
  const doctor = new Doctor({ ...parts, checks: () => [check] })
  await doctor.runDue(true)
  await doctor.runDue(true)
  expect(runs).toBe(1)
  broken = true
  expect(await doctor.run()).toMatchObject({
    status: 'fail',
    lines: [
      { subject: '/data', message: 'It is full.' },
      { subject: 'the check itself', status: 'warn', message: 'The check failed: a bug.' },
    ],
  })
  broken = false
  const { lines } = await doctor.run()
  expect(lines).toMatchObject([{ subject: '/data' }])
  // the only box on its database needs no name
  expect(lines[0]).not.toHaveProperty('box')
  expect(runs).toBe(3)
})
