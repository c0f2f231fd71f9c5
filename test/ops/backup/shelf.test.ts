import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config.ts'
import { appliance, type Appliance } from '../../support/appliance.ts'
import { folder } from '../../support/folder.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { passphraseFile, pillarbox } from './command.ts'

/** Waits until a job is over; answers it. */
async function over(box: Appliance, id: string): Promise<Record<string, unknown>> {
  for (;;) {
    const { body } = await box.call('GET', `/v1/jobs/${id}`)
    if (body['status'] !== 'running') return body
    await sleep(50)
  }
}

test('the operator has the box make backups, of which the newest are kept', async () => {
  const clock = new HeldClock()
  const env = {
    PILLARBOX_BACKUP__DIRECTORY: './shelf',
    PILLARBOX_BACKUP__KEEP: '2',
    PILLARBOX_BACKUP__PASSPHRASE_FILE: passphraseFile(folder()),
    PILLARBOX_METRICS__TOKEN: 'metrics-token-of-this-test',
  }
  const box = await appliance(env, clock)
  const backupDirectory = join(box.directory, 'shelf')
  // the directory is not made for whom it was not meant: it may be a disk that is not mounted
  const refused = await box.call('POST', '/v1/backups', {})
  expect([refused.status, refused.body.error]).toMatchObject([409, { code: 'backup_not_configured' }])
  mkdirSync(backupDirectory)
  // what others put there is theirs, and so is what is being written; what was given up long ago is not
  const [theirs, fresh, stale] = [
    'pillarbox-20200101T000000000Z.tar',
    'pillarbox-20200101T000000000Z.tar.part',
    'pillarbox-20200102T000000000Z.tar.part.db',
  ]
  for (const name of ['notes.txt', theirs, fresh, stale]) writeFileSync(join(backupDirectory, name), 'x')
  utimesSync(join(backupDirectory, stale), 1, 1)

  const names: string[] = []
  for (let day = 0; day < 3; day += 1) {
    clock.advance(86_400_000)
    const { status, body: job } = await box.call('POST', '/v1/backups', {})
    expect([status, job]).toMatchObject([200, { kind: 'backup', status: 'running' }])
    const done = await over(box, job.id)
    expect(done).toMatchObject({ status: 'done', result: { keys: true, warnings: [] }, progress: { unit: 'bytes' } })
    names.push((done['result'] as { name: string }).name)
  }
  expect(new Set(readdirSync(backupDirectory))).toEqual(new Set([fresh, 'notes.txt', theirs, names[1], names[2]]))
  const { body } = await box.call('GET', '/v1/backups')
  expect(body).toMatchObject({
    data: [{ name: names[2], keys: true, database_version: expect.any(Number) }, { name: names[1] }],
    has_more: false,
  })
  const first = await box.call('GET', '/v1/backups?limit=1')
  expect(first.body).toMatchObject({ data: [{ name: names[2] }], has_more: true })
  const second = await box.call('GET', `/v1/backups?limit=1&cursor=${first.body['next_cursor']}`)
  expect(second.body).toMatchObject({ data: [{ name: names[1] }], has_more: false, next_cursor: null })
  const { body: text } = await box.call<string>('GET', '/metrics', undefined, { key: 'metrics-token-of-this-test' })
  expect(text).toContain(`pillarbox_backup_last_timestamp_seconds ${clock.now() / 1000}\n`)
  expect(
    (await pillarbox(box, 'verify', join(backupDirectory, names[2]!), '--passphrase-file', env.PILLARBOX_BACKUP__PASSPHRASE_FILE))
      .status,
  ).toBe(0)
}, 300_000)

test('backups that were made while the clock was ahead are no newest ones, and give way to those after them', async () => {
  const clock = new HeldClock()
  const env = {
    PILLARBOX_BACKUP__DIRECTORY: './shelf',
    PILLARBOX_BACKUP__KEEP: '1',
    PILLARBOX_METRICS__TOKEN: 'metrics-token-of-this-test',
  }
  const box = await appliance(env, clock)
  const backupDirectory = join(box.directory, 'shelf')
  mkdirSync(backupDirectory)
  const made = async (): Promise<string> => {
    const { body: job } = await box.call('POST', '/v1/backups', {})
    return ((await over(box, job.id))['result'] as { name: string }).name
  }
  const last = async (): Promise<string> => {
    const { body: text } = await box.call<string>('GET', '/metrics', undefined, { key: 'metrics-token-of-this-test' })
    return /^pillarbox_backup_last_timestamp_seconds (\S+)$/m.exec(text)![1]!
  }
  clock.advance(30 * 86_400_000)
  await made()
  clock.advance(-29 * 86_400_000)
  expect(await last()).toBe('0')
  const name = await made()
  expect(readdirSync(backupDirectory)).toEqual([name])
  expect(await last()).toBe(String(clock.now() / 1000))
})

test('for timers: beside a running box the box makes it, of a stopped one the command does', async () => {
  const box = await appliance({ PILLARBOX_BACKUP__DIRECTORY: './shelf', PILLARBOX_BACKUP__KEEP: '1' })
  const backupDirectory = join(box.directory, 'shelf')
  mkdirSync(backupDirectory)
  const running = await pillarbox(box, 'backup', '--auto', '--json')
  expect([running.status, running.errors]).toEqual([0, expect.stringMatching(/^Warning: The keys were left out/)])
  expect(running.errors).toContain(`store ${join(box.directory, 'data-keys', 'master.key')} in another safe place`)
  const { name } = JSON.parse(running.output) as { name: string }
  expect(readdirSync(backupDirectory)).toEqual([name])
  expect((await box.call('GET', '/v1/jobs?kind=backup')).body.data).toHaveLength(1)
  await box.app.stop()
  const stopped = await pillarbox(box, 'backup', '--auto', '--json')
  expect([stopped.status, JSON.parse(stopped.output)]).toMatchObject([0, { removed: [name] }])
  expect(readdirSync(backupDirectory)).toHaveLength(1)
  await box.restart()
}, 300_000)

test('a box that was not told where says so; told by a reload, it knows', async () => {
  const box = await appliance()
  const refused = await box.call('POST', '/v1/backups', {})
  expect([refused.status, refused.body.error]).toMatchObject([
    409,
    { code: 'backup_not_configured', message: 'No backup directory is configured: set backup.directory, and reload.' },
  ])
  expect((await box.call('GET', '/v1/backups')).body.data).toEqual([])
  mkdirSync(join(box.directory, 'shelf'))
  const env = { ...box.env, PILLARBOX_BACKUP__DIRECTORY: './shelf' }
  expect(await box.app.reload(await loadConfig({ env, cwd: box.directory }))).toMatchObject({ restart: [] })
  const { body: job } = await box.call('POST', '/v1/backups', {})
  expect(await over(box, job.id)).toMatchObject({ status: 'done' })
  await expect(
    loadConfig({ env: { ...box.env, PILLARBOX_BACKUP__DIRECTORY: './data/shelf' }, cwd: box.directory }),
  ).rejects.toThrow(/must be outside data_dir/)
}, 300_000)

test('a backup under way is cancelled, and nothing is left of it', async () => {
  const box = await appliance({ PILLARBOX_BACKUP__DIRECTORY: './shelf' })
  const backupDirectory = join(box.directory, 'shelf')
  mkdirSync(backupDirectory)
  const { body: job } = await box.call('POST', '/v1/backups', {})
  const another = await box.call('POST', '/v1/backups', {})
  expect([another.status, another.body.error]).toMatchObject([409, { code: 'job_running' }])
  const { body: cancelled } = await box.call('POST', `/v1/jobs/${job.id}/cancel`)
  expect(cancelled['status']).toBe('cancelled')
  expect(readdirSync(backupDirectory)).toEqual([])
  // a box that stops does not wait for one
  await box.call('POST', '/v1/backups', {})
  await box.app.stop()
  expect(readdirSync(backupDirectory)).toEqual([])
  await box.restart()
}, 300_000)
