import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { zstdDecompressSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import { bigBox } from '../../ops/backup/big-box.ts'
import { passphraseFile, pillarbox, started } from '../../ops/backup/command.ts'
import { readBack } from '../../ops/backup/read-back.ts'
import { type Appliance, appliance } from '../../support/appliance.ts'
import { folder } from '../../support/folder.ts'
import { boxProcess } from '../../support/process.ts'
import { succeed } from '../../support/program.ts'
import { contentsOf } from './contents.ts'
import { fullBox } from './full-box.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()

/** An empty database of this name; answers its URL. */
async function empty(name: string): Promise<string> {
  await emptyDatabase(postgres(), name)
  return postgres().url(name)
}

/** The database file in a backup. */
async function databaseIn(backup: string): Promise<string> {
  const directory = folder()
  await succeed('tar', ['xf', backup], { cwd: directory })
  const file = join(directory, 'pillarbox.db')
  writeFileSync(file, zstdDecompressSync(readFileSync(`${file}.zst`)))
  return file
}

test('a backup that was made on one engine is restored on the other, where the box answers the same', async () => {
  const { box, file, answers } = await fullBox()
  const shelf = join(box.directory, 'shelf')
  mkdirSync(shelf)
  const passphrase = ['--passphrase-file', passphraseFile(box.directory)]
  const fromSqlite = join(box.directory, 'sqlite.tar')
  expect(await pillarbox(box, 'backup', fromSqlite, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  const moved = await empty('moved')
  expect(await pillarbox(box, 'move', '--to', moved)).toMatchObject({ status: 0, errors: '' })
  const settings = { ...box.env, PILLARBOX_BACKUP__DIRECTORY: shelf, PILLARBOX_BACKUP__PASSPHRASE_FILE: passphrase[1]! }
  const env = { ...settings, PILLARBOX_DATABASE__URL: moved }

  const stopped = join(box.directory, 'stopped.tar')
  expect(await pillarbox({ ...box, env }, 'backup', stopped, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  // nothing was changed since
  expect(contentsOf(await databaseIn(stopped))).toEqual(contentsOf(file))

  const running = await started(join(box.directory, 'data'), env)
  const { body: job } = await running.call('POST', '/v1/backups', {})
  await expect.poll(async () => (await running.call('GET', `/v1/jobs/${job.id}`)).body.status).toBe('done')
  expect((await pillarbox(running, 'backup', '--auto')).output).toMatch(/^The box wrote pillarbox-/)
  const fromPostgres = join(box.directory, 'postgres.tar')
  expect(await pillarbox(running, 'backup', fromPostgres, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  expect((await running.call('GET', '/v1/backups')).body.data).toHaveLength(2)
  expect(await readBack(running)).toEqual(answers)
  await running.app.stop()
  expect(await pillarbox(running, 'backup', '--auto')).toMatchObject({ status: 0, errors: '' })
  const shelved = readdirSync(shelf).map((name) => join(shelf, name))
  expect(shelved).toHaveLength(3)
  for (const backup of [shelved[0]!, fromPostgres, stopped]) {
    const verified = await pillarbox(box, 'verify', backup, ...passphrase)
    expect([verified.status, verified.errors]).toEqual([0, ''])
    expect(verified.output).toMatch(
      /The audit log is unchanged: .*\nThe master key decrypts all encrypted values \(\d+ values\)\.\n$/,
    )
  }

  const restored: [name: string, backup: string, url: string | undefined][] = [
    ['there', fromPostgres, undefined],
    ['again', fromPostgres, await empty('again')],
    ['other', fromSqlite, await empty('other')],
  ]
  for (const [name, backup, url] of restored) {
    const data = join(box.directory, name)
    const own = {
      ...settings,
      PILLARBOX_DATA_DIR: data,
      PILLARBOX_KEYS_DIR: `${data}-keys`,
      ...(url && { PILLARBOX_DATABASE__URL: url }),
    }
    const said = await pillarbox({ ...box, env: own }, 'restore', backup, ...passphrase)
    expect([name, said.status, said.errors]).toEqual([name, 0, ''])
    expect(
      readdirSync(data)
        .filter((one) => !one.startsWith('lock'))
        .toSorted(),
    ).toEqual([url ? 'postgresql.txt' : 'pillarbox.db', 'state.json'])
    const now = await started(data, own)
    expect(await readBack(now)).toEqual(answers)
    await now.app.stop()
  }
}, 600_000)

test('a backup of a box on PostgreSQL that is written to is of one moment', async () => {
  const box = await appliance({ PILLARBOX_DATABASE__URL: await empty('busy') })
  const file = join(box.directory, 'box.tar')
  const state = { going: true }
  const writer = async (): Promise<number> => {
    let count = 0
    while (state.going)
      if ((await box.call('POST', '/v1/identities', { name: `N${(count += 1)}` })).status !== 201) throw new Error('refused')
    return count
  }
  const written = writer()
  await vi.waitFor(async () => expect((await box.call('GET', '/v1/identities')).body.data.length).toBeGreaterThan(3))
  expect(await pillarbox(box, 'backup', file)).toMatchObject({ status: 0 })
  state.going = false
  const count = await written
  // its audit log is a chain to its end, and no row refers to one that is missing
  expect(await pillarbox(box, 'verify', file)).toMatchObject({ status: 0, errors: '' })
  using database = new DatabaseSync(await databaseIn(file), { readOnly: true })
  const { identities, events } = database
    .prepare(
      `SELECT (SELECT count(*) FROM identities) AS identities, (SELECT count(*) FROM events WHERE type = 'identity.created') AS events`,
    )
    .get() as Record<string, number>
  expect(identities).toBe(events)
  expect(identities).toBeGreaterThan(0)
  expect(identities).toBeLessThanOrEqual(count)
})

test('what cannot be backed up or restored there is said, and nothing is left of it', async () => {
  const url = await empty('home')
  const box: Appliance = await appliance({ PILLARBOX_DATABASE__URL: url })
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  const file = join(box.directory, 'box.tar')
  expect(await pillarbox(box, 'backup', file)).toMatchObject({ status: 0 })
  await box.app.stop()
  const { PILLARBOX_DATABASE__URL: _, ...without } = box.env
  const unset = await pillarbox({ ...box, env: without }, 'backup', join(box.directory, 'b.tar'))
  expect([unset.status, unset.errors]).toEqual([
    1,
    expect.stringMatching(/^The data of this box is in the database home of .* Set database\.url/),
  ])
  const gone = { ...box.env, PILLARBOX_DATABASE__URL: postgres().url('gone') }
  const away = await pillarbox({ ...box, env: gone }, 'backup', join(box.directory, 'b.tar'))
  expect([away.status, away.errors]).toEqual([
    1,
    expect.stringMatching(/database "gone" does not exist .* Nothing was backed up\.\n$/),
  ])
  const data = join(box.directory, 'new')
  const key = ['--master-key', join(box.directory, 'data-keys', 'master.key')]
  const over = await pillarbox(
    { ...box, env: { ...box.env, PILLARBOX_KEYS_DIR: `${data}-keys` } },
    'restore',
    file,
    '--data',
    data,
    ...key,
  )
  expect([over.status, over.errors]).toEqual([
    1,
    expect.stringMatching(/^The database home of .* has the data of a box\. Name an empty database/),
  ])
  expect(readdirSync(box.directory).filter((name) => name.startsWith('new') || name.startsWith('b.tar'))).toEqual([])
})

test('a restore into PostgreSQL that is killed is run again, and no box starts before', async () => {
  const at = postgres()
  const box = await bigBox(64)
  const file = join(box.directory, 'box.tar')
  expect(await pillarbox(box, 'backup', file)).toMatchObject({ status: 0 })
  const data = join(box.directory, 'new')
  const own = {
    ...box.env,
    PILLARBOX_DATA_DIR: data,
    PILLARBOX_KEYS_DIR: `${data}-keys`,
    PILLARBOX_DATABASE__URL: await empty('cut'),
  }
  const words = ['restore', file, '--master-key', join(box.directory, 'data-keys', 'master.key')]
  const blobs = async (): Promise<unknown> =>
    (await at.run('cut', `SELECT to_regclass('blobs') IS NOT NULL AS there`))[0]!['there'] === true &&
    (await at.run('cut', 'SELECT count(*)::int AS n FROM blobs'))[0]!['n']
  const running = boxProcess(own, words, box.directory)
  await vi.waitFor(async () => expect(await blobs()).toBeGreaterThan(0), { timeout: 100_000, interval: 5 })
  await running.end('SIGKILL')
  expect(existsSync(join(data, 'state.json'))).toBe(false)
  const other = join(box.directory, 'other')
  await expect(started(other, { ...own, PILLARBOX_KEYS_DIR: `${other}-keys` })).rejects.toThrow(
    /has only a part of a box: pillarbox move or pillarbox restore has not ended/,
  )
  expect(await pillarbox({ ...box, env: own }, ...words)).toMatchObject({ status: 0, errors: '' })
  expect(await blobs()).toBe(64)
  const now = await started(data, own)
  expect((await now.call('GET', '/v1/identities')).body.data).toMatchObject([{ name: 'Ada' }])
})

test('of a box on PostgreSQL pillarbox audit verify says when rows can be changed, and which were', async () => {
  const at = postgres()
  const box = await appliance({ PILLARBOX_DATABASE__URL: await empty('audited') })
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.app.stop()
  const verify = () => pillarbox(box, 'audit', 'verify')
  expect((await verify()).output).toMatch(/^The audit log is unchanged: \d+ rows/)
  await at.run('audited', 'ALTER TABLE audit DISABLE TRIGGER audit_unchanged')
  expect(await verify()).toMatchObject({
    status: 1,
    output: expect.stringContaining('is open to changes: the triggers audit_unchanged are missing'),
  })
  await at.run('audited', `UPDATE audit SET actor = 'key_2' WHERE seq = 1`, 'ALTER TABLE audit ENABLE TRIGGER audit_unchanged')
  expect(await verify()).toMatchObject({
    status: 1,
    output: expect.stringContaining('row 1 was changed: its hash does not match'),
  })
})
