import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { parsePostgresUrl } from '../../../src/config/database/postgres-url.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import { pillarbox, started } from '../../ops/backup/command.ts'
import { readBack } from '../../ops/backup/read-back.ts'
import { type Appliance, appliance } from '../../support/appliance.ts'
import { freePort } from '../../support/free-port.ts'
import { contentsOf } from './contents.ts'
import { fullBox } from './full-box.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()

test('a box that is moved to PostgreSQL and back has the same rows, words and numbers, and answers the same there', async () => {
  const { box, file, answers } = await fullBox()
  await emptyDatabase(postgres(), 'there')
  const url = postgres().url('there')
  const before = contentsOf(file)
  const bytes = readFileSync(file)
  const there = await pillarbox(box, 'move', '--to', url, '--json')
  expect(there).toMatchObject({ status: 0, errors: '' })
  const moved = JSON.parse(there.output) as { tables: Record<string, { rows: number }> }
  for (const [name, { rows }] of Object.entries(moved.tables))
    if (name !== 'emails_search') expect([name, rows]).toEqual([name, before[name]!.length])
  expect(readFileSync(file).equals(bytes)).toBe(true)
  // the file is not taken for the box any more
  expect((await pillarbox(box, 'domain', 'list')).errors).toMatch(/on PostgreSQL\. Set database\.url; nothing was changed/)
  box.env['PILLARBOX_DATABASE__URL'] = url
  const again = await pillarbox(box, 'move', '--to', 'postgres')
  expect([again.status, again.errors]).toEqual([
    1,
    expect.stringMatching(/has the data of a box\. Name an empty database; nothing was changed/),
  ])
  const full = await pillarbox(box, 'move', '--to', 'sqlite')
  expect([full.status, full.errors]).toEqual([
    1,
    expect.stringMatching(/pillarbox\.db exists: it is of another time\. Move it away/),
  ])

  renameSync(file, `${file}.former`)
  const back = await pillarbox(box, 'move', '--to', 'sqlite')
  expect(back).toMatchObject({ status: 0, errors: '' })
  expect(back.output).toMatch(
    /each with the same checksum as before\.\nRemove database\.url from the settings, then start the box\./,
  )
  expect(contentsOf(file)).toEqual(before)
  expect((await pillarbox(box, 'domain', 'list')).errors).toMatch(/has a database of its own, .*Move it with pillarbox move/)

  await emptyDatabase(postgres(), 'lives')
  box.env['PILLARBOX_DATABASE__URL'] = postgres().url('lives')
  expect(await pillarbox(box, 'move', '--to', 'postgres')).toMatchObject({ status: 0, errors: '' })
  const running = await started(join(box.directory, 'data'), box.env)
  expect(await readBack(running)).toEqual(answers)
  const { body: made } = await running.call('POST', '/v1/identities', { name: 'New' })
  expect(made.id).toMatch(/^ident_/)
})

test('a move is refused with a sentence, and nothing is changed', async () => {
  const at = postgres()
  const box: Appliance = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  const file = join(box.directory, 'data', 'pillarbox.db')
  await emptyDatabase(at, 'latin1', "ENCODING 'LATIN1' LOCALE 'C'")
  await emptyDatabase(at, 'sorted', "ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
  await emptyDatabase(at, 'locked')
  await at.run('postgres', 'ALTER DATABASE locked SET default_transaction_read_only = on')
  await emptyDatabase(at, 'others')
  await at.run('others', 'CREATE TABLE accounts (id integer)')
  await emptyDatabase(at, 'used')
  const other = await appliance({ PILLARBOX_DATABASE__URL: at.url('used') })
  const running = await pillarbox(box, 'move', '--to', at.url('used'))
  expect(running.errors).toMatch(/is in use by another Pillarbox process.* Stop it first\.\n$/)
  // to stop it would not help
  expect((await pillarbox(box, 'move', '--to', 'sqlite')).errors).toMatch(/^database\.url is not set/)
  await box.app.stop()
  const before = contentsOf(file)
  const elsewhere = `postgres://postgres:secret-word@127.0.0.1:${await freePort()}/none`
  const refused: [string, RegExp][] = [
    ['mysql://secret-word@host/d', /^--to must be a URL such as postgres:\/\/user@host\/database, or be sqlite\.\n$/],
    ['postgres', /^database\.url is not set\. Set it, or give the URL/],
    ['sqlite', /^database\.url is not set: it names the database that is moved\. Nothing was changed\.\n$/],
    [elsewhere, /^The database none of .* cannot be used: connect ECONNREFUSED/],
    [at.url('nowhere'), /cannot be used: database "nowhere" does not exist/],
    [at.url('latin1'), /has the encoding LATIN1; Pillarbox needs UTF8/],
    [at.url('sorted'), /does not compare texts byte by byte/],
    [at.url('locked'), /is read-only/],
    [at.url('others'), /has tables that are not of Pillarbox/],
    [at.url('used'), /^Another Pillarbox has the database used of .* open/],
  ]
  for (const [to, sentence] of refused) {
    const { status, errors } = await pillarbox(box, 'move', '--to', to)
    expect([to, status, errors]).toEqual([to, 1, expect.stringMatching(sentence)])
    expect(errors).not.toContain('secret')
  }
  await other.app.stop()
  expect((await pillarbox(box, 'move', '--to', at.url('used'))).errors).toMatch(
    /^The database used of .* has the data of a box\. Name an empty database; nothing was changed\.\n$/,
  )
  await at.run('used', 'UPDATE schema_version SET version = 9999')
  expect((await pillarbox(box, 'move', '--to', at.url('used'))).errors).toMatch(
    /has the data of a box|was written by a newer Pillarbox/,
  )
  const back = await pillarbox(other, 'move', '--to', 'sqlite')
  expect(back.errors).toMatch(
    /was written by a newer Pillarbox \(version 9999, this one knows \d+\)\. Run the newer program\. Nothing was changed/,
  )
  expect(contentsOf(file)).toEqual(before)
  // a file of another version is opened by its own program first
  const database = new DatabaseSync(file)
  database.exec('PRAGMA user_version = 59')
  database.close()
  await emptyDatabase(at, 'unused')
  expect((await pillarbox(box, 'move', '--to', at.url('unused'))).errors).toMatch(
    /was last opened by an earlier Pillarbox \(version 59, this one's is \d+\)\. Start the box once with this program\. Nothing was changed/,
  )
  expect(
    await at.run('unused', `SELECT count(*)::int AS tables FROM pg_class WHERE relnamespace = 'public'::regnamespace`),
  ).toEqual([{ tables: 0 }])
})

test('a copy that is changed behind its back is noticed, and is not taken for the box', async () => {
  const at = postgres()
  const box = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.app.stop()
  await emptyDatabase(at, 'changed')
  await preparePostgres(parsePostgresUrl(at.url('changed')), false)
  await at.run(
    'changed',
    `CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name = 'Eve'; RETURN NEW; END $$`,
    'CREATE TRIGGER other BEFORE INSERT ON identities FOR EACH ROW EXECUTE FUNCTION other()',
  )
  const moved = await pillarbox(box, 'move', '--to', at.url('changed'))
  expect([moved.status, moved.errors]).toEqual([
    1,
    expect.stringMatching(
      /^The copy is not the same as its source: identities \(another checksum\)\. The box that is moved was not changed\./,
    ),
  ])
  await at.run('changed', 'DROP FUNCTION other() CASCADE')
  expect(await pillarbox(box, 'move', '--to', at.url('changed'))).toMatchObject({ status: 0, errors: '' })
})
