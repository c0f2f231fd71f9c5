import { execFileSync } from 'node:child_process'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { RowSum } from '../../../src/store/copy/copy.ts'
import { SqliteSource, tablesOf } from '../../../src/store/copy/sqlite-side.ts'
import { DatabaseSync } from 'node:sqlite'
import { bigBox } from '../../ops/backup/big-box.ts'
import { pillarbox } from '../../ops/backup/command.ts'
import { appliance } from '../../support/appliance.ts'
import { killsOr } from '../../support/kills.ts'
import { boxProcess } from '../../support/process.ts'
import { run } from '../../support/program.ts'
import { smallDisk } from '../../support/small-disk.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const kills = killsOr(2)
const postgres = serverOfFile()

/** The rows of each table of a database file, with their checksum. */
async function sumsOf(file: string): Promise<Record<string, string>> {
  using database = new DatabaseSync(file, { readOnly: true })
  const sums: Record<string, string> = {}
  for (const table of tablesOf(database)) {
    const sum = new RowSum()
    for await (const batch of new SqliteSource(database).rows(table, 0)) for (const row of batch) sum.add(row)
    sums[table.name] = `${sum.rows} ${sum.checksum}`
  }
  return sums
}

/** How many large rows an unfinished copy on the server has; -1 where there is none. */
async function copied(database: string): Promise<number> {
  const [found] = await postgres().run(database, `SELECT to_regclass('unfinished_copy') IS NOT NULL AS there`)
  if (found!['there'] !== true) return -1
  const [row] = await postgres().run(
    database,
    `SELECT coalesce(max(done), 0)::int AS done FROM unfinished_copy WHERE part = 'blobs'`,
  )
  return row!['done'] as number
}

test('a move that is killed goes on with the same command, and no box starts on a part', async () => {
  const at = postgres()
  const box = await bigBox(96)
  const file = join(box.directory, 'data', 'pillarbox.db')
  const before = await sumsOf(file)
  await emptyDatabase(at, 'killed')
  const url = at.url('killed')
  const withUrl = { ...box, env: { ...box.env, PILLARBOX_DATABASE__URL: url } }
  for (let kill = 0; kill < kills; kill += 1) {
    const from = Math.max(0, await copied('killed'))
    const moving = boxProcess(box.env, ['move', '--to', url], box.directory)
    await vi.waitFor(async () => expect(await copied('killed')).toBeGreaterThan(from), { timeout: 100_000, interval: 5 })
    await moving.end(kill % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
    if (kill % 2 === 1)
      expect(moving.errors()).toBe('Interrupted. What was copied is kept: run the same command again, and it goes on.\n')
    expect(await copied('killed')).toBeLessThan(97)
  }
  const first = 'SELECT xmin::text FROM blobs ORDER BY id LIMIT 1'
  const [row] = await at.run('killed', first)
  // neither of the two is taken for what it is not
  renameSync(file, `${file}.away`)
  expect((await pillarbox(withUrl, 'domain', 'list')).errors).toMatch(
    /^The database killed of .* has only a part of a box: pillarbox move or pillarbox restore has not ended\. Run the same command again/,
  )
  renameSync(`${file}.away`, file)
  expect(await pillarbox(box, 'move', '--to', url)).toMatchObject({ status: 0, errors: '' })
  // what was there was not copied again
  expect(await at.run('killed', first)).toEqual([row])
  expect(await copied('killed')).toBe(-1)

  renameSync(file, `${file}.former`)
  const draft = `${file}.moving`
  for (let kill = 0; kill < kills; kill += 1) {
    const moving = boxProcess(withUrl.env, ['move', '--to', 'sqlite'], box.directory)
    await vi.waitFor(() => expect(existsSync(draft)).toBe(true), { timeout: 100_000, interval: 5 })
    await sleep(100)
    await moving.end('SIGKILL')
    if (existsSync(file)) break
    expect((await pillarbox(box, 'domain', 'list')).errors).toMatch(
      /was not moved to SQLite as a whole: run pillarbox move --to sqlite again/,
    )
  }
  if (!existsSync(file)) expect(await pillarbox(withUrl, 'move', '--to', 'sqlite')).toMatchObject({ status: 0, errors: '' })
  expect(existsSync(draft)).toBe(false)
  expect(await sumsOf(file)).toEqual(before)
})

test('a box that ran since a move was killed is moved anew, as it is now', async () => {
  const at = postgres()
  const box = await bigBox(64)
  await emptyDatabase(at, 'since')
  const moving = boxProcess(box.env, ['move', '--to', at.url('since')], box.directory)
  await vi.waitFor(async () => expect(await copied('since')).toBeGreaterThan(0), { timeout: 100_000, interval: 5 })
  await moving.end('SIGKILL')
  await box.restart()
  await box.call('POST', '/v1/identities', { name: 'Grace' })
  expect((await pillarbox(box, 'move', '--to', at.url('since'))).errors).toMatch(
    /is in use by another Pillarbox process.* Stop it first\.\n$/,
  )
  await box.app.stop()
  expect(await pillarbox(box, 'move', '--to', at.url('since'))).toMatchObject({ status: 0, errors: '' })
  expect(await at.run('since', 'SELECT name FROM identities ORDER BY seq')).toEqual([{ name: 'Ada' }, { name: 'Grace' }])
})

test('without room a move stops with a sentence, and goes on when there is some', async () => {
  const at = postgres()
  const small = smallDisk(40)
  if (small === undefined) return
  const box = await bigBox(48)
  const before = await sumsOf(join(box.directory, 'data', 'pillarbox.db'))
  execFileSync('chown', ['postgres', small])
  await at.run('postgres', `CREATE TABLESPACE small LOCATION '${small}'`)
  await emptyDatabase(at, 'filled', "TABLESPACE small ENCODING 'UTF8' LOCALE 'C'")
  const url = at.url('filled')
  const full = await pillarbox(box, 'move', '--to', url)
  expect([full.status, full.errors]).toEqual([
    1,
    expect.stringMatching(
      /^The move stopped: the disk of the database server is full\. Free space there\. What was copied is kept: run the same command again/,
    ),
  ])
  execFileSync('mount', ['-o', 'remount,size=400m', small])
  expect(await pillarbox(box, 'move', '--to', url)).toMatchObject({ status: 0, errors: '' })

  const file = join(box.directory, 'data', 'pillarbox.db')
  renameSync(file, `${file}.former`)
  const env = { ...box.env, PILLARBOX_DATABASE__URL: url }
  const program = new URL('../../../src/main.ts', import.meta.url).pathname
  const limited = await run('prlimit', ['--fsize=20000000', process.execPath, program, 'move', '--to', 'sqlite'], {
    env,
    cwd: box.directory,
  })
  expect([limited.code, limited.errors]).toEqual([
    1,
    expect.stringMatching(/^The move stopped: the disk of the data directory is full\. Free space\. What was copied is kept/),
  ])
  expect(existsSync(file)).toBe(false)
  expect(await pillarbox({ ...box, env }, 'move', '--to', 'sqlite')).toMatchObject({ status: 0, errors: '' })
  expect(await sumsOf(file)).toEqual(before)
  await at.run('postgres', 'DROP DATABASE filled', 'DROP TABLESPACE small')
})

test('a move whose server goes away stops with a sentence, and goes on when it is back', async () => {
  const at = postgres()
  const box = await bigBox(64)
  await emptyDatabase(at, 'crashed')
  const moving = boxProcess(box.env, ['move', '--to', at.url('crashed')], box.directory)
  await vi.waitFor(async () => expect(await copied('crashed')).toBeGreaterThan(0), { timeout: 100_000, interval: 5 })
  await at.stop('immediate')
  try {
    expect(await moving.ended).toBe(1)
    expect(moving.errors()).toMatch(
      /^The move stopped: .+\. What was copied is kept: run the same command again, and it goes on\./,
    )
  } finally {
    await at.start()
  }
  expect(await pillarbox(box, 'move', '--to', at.url('crashed'))).toMatchObject({ status: 0, errors: '' })
  expect(await at.run('crashed', 'SELECT count(*)::int AS n FROM blobs')).toEqual([{ n: 64 }])
})

test('what a killed box had only in its log is moved too', async () => {
  const at = postgres()
  const box = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  // as a kill leaves it: another connection keeps the log
  using reader = new DatabaseSync(join(box.directory, 'data', 'pillarbox.db'))
  reader.exec('BEGIN; SELECT count(*) FROM box')
  await box.call('POST', '/v1/identities', { name: 'Grace' })
  await box.app.stop()
  await emptyDatabase(at, 'logged')
  expect(await pillarbox(box, 'move', '--to', at.url('logged'))).toMatchObject({ status: 0, errors: '' })
  expect(await at.run('logged', 'SELECT name FROM identities ORDER BY seq')).toEqual([{ name: 'Ada' }, { name: 'Grace' }])
})
