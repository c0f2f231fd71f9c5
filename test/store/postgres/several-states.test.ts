import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { parsePostgresUrl } from '../../../src/config/database/postgres-url.ts'
import { takeServerSnapshot } from '../../../src/ops/backup/server-snapshot.ts'
import { passphraseFile, pillarbox } from '../../ops/backup/command.ts'
import { type Appliance, appliance } from '../../support/appliance.ts'
import { attempt } from '../../support/people.ts'
import { folder } from '../../support/folder.ts'
import { severalBoxes } from './boxes.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()
const password = 'a long and quiet evening'

interface Document {
  box_id: string
  accounts: { id: string; name: string; limits?: Record<string, number | null> }[]
}

const fileOf = (box: Appliance): string => join(box.env['PILLARBOX_DATA_DIR']!, 'state.json')
const documentOf = (box: Appliance): Document => JSON.parse(readFileSync(fileOf(box), 'utf8')) as Document

function edit(box: Appliance, change: (document: Document) => void): void {
  const document = documentOf(box)
  change(document)
  writeFileSync(fileOf(box), JSON.stringify(document))
}

/** Opens another box on the database of one. */
function another(box: Appliance, env: Record<string, string>): Promise<Appliance> {
  return appliance({ ...box.env, PILLARBOX_DATA_DIR: join(folder(), 'data'), ...env }, undefined, {
    postgres: { shared: true, heartbeat },
  })
}

test('a box with an empty directory becomes one of those on the database; what accounts there are is the same at each', async () => {
  const [one, other] = await severalBoxes(postgres())
  expect(documentOf(other)).toEqual(documentOf(one))
  const added = { name: 'second', email: 'eve@example.com', password }
  const { id } = await one.app.accounts.add(added)
  await expect.poll(async () => (await attempt(other, added)).status).toBe(400)
  await expect.poll(async () => (await attempt(other, { email: added.email, password })).status).toBe(200)
  expect(documentOf(other).accounts.map((account) => account.id)).toContain(id)
  await expect(other.app.accounts.add({ ...added, email: 'bob@example.com' })).rejects.toMatchObject({ type: 'conflict' })
})

test('of accounts that boxes add at the same time none is lost', async () => {
  const boxes = await severalBoxes(postgres(), 3)
  await Promise.all(
    Array.from({ length: 9 }, (_, n) =>
      boxes[n % 3]!.app.accounts.add({ name: `account ${n}`, email: `ada${n}@example.com`, password }),
    ),
  )
  for (const box of boxes) {
    await expect.poll(() => documentOf(box).accounts).toHaveLength(10)
    expect(await box.app.accounts.list()).toHaveLength(10)
  }
})

test('limits of an account that are edited at one box hold at the others', async () => {
  const [one, other] = await severalBoxes(postgres())
  edit(one, ({ accounts }) => (accounts[0]!.limits = { identities: 1 }))
  await one.app.reread()
  await expect.poll(() => documentOf(other).accounts[0]!.limits).toEqual({ identities: 1 })
  expect((await other.call('POST', '/v1/identities', { name: 'Ada' })).status).toBe(201)
  expect((await other.call('POST', '/v1/identities', { name: 'Bob' })).body.error['code']).toBe('plan_limit_reached')
  // a restart takes over what was changed meanwhile
  await other.app.stop()
  edit(one, ({ accounts }) => (accounts[0]!.limits = { identities: 2 }))
  await one.app.reread()
  await other.restart()
  expect((await other.call('POST', '/v1/identities', { name: 'Bob' })).status).toBe(201)
  writeFileSync(fileOf(other), '{')
  await expect(other.app.reread()).rejects.toThrow(/state\.json is damaged/)
  expect((await other.call('GET', '/v1/billing/subscription')).body['limits']).toMatchObject({ identities: 2 })
})

test('a box with another master key is refused, and one without is not given one of its own', async () => {
  const [one] = await severalBoxes(postgres(), 1)
  const elsewhere = await appliance({ PILLARBOX_KEYS_DIR: join(folder(), 'keys') })
  await expect(another(one, { PILLARBOX_KEYS_DIR: elsewhere.env['PILLARBOX_KEYS_DIR']! })).rejects.toThrow(
    /is not the master key that encrypts this database/,
  )
  const empty = join(folder(), 'keys')
  await expect(another(one, { PILLARBOX_KEYS_DIR: empty })).rejects.toThrow(/master\.key/)
  expect(existsSync(join(empty, 'master.key'))).toBe(false)
})

test('the directory of another box is refused', async () => {
  const [one] = await severalBoxes(postgres(), 1)
  const [foreign] = await severalBoxes(postgres(), 1)
  await foreign.app.stop()
  const before = documentOf(foreign)
  await expect(
    another(one, { PILLARBOX_DATA_DIR: foreign.env['PILLARBOX_DATA_DIR']!, PILLARBOX_KEYS_DIR: one.env['PILLARBOX_KEYS_DIR']! }),
  ).rejects.toThrow(/state\.json is of another box/)
  expect(documentOf(foreign)).toEqual(before)
})

test('a box that is opened alone later takes over what the boxes shared, and nothing of that comes back', async () => {
  const [one, other] = await severalBoxes(postgres())
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: job } = await other.call('POST', `/v1/identities/${ada.id}/export`, {})
  const url = async (box: Appliance): Promise<string | undefined> => {
    const { body } = await box.call('GET', `/v1/jobs/${job.id}`)
    return body['status'] === 'done' ? (body['result'].url as string) : undefined
  }
  await expect.poll(() => url(other), { timeout: 20_000 }).toBeDefined()
  const wrong = { email: 'nobody@example.com', password: 'no such password' }
  expect((await attempt(one, wrong)).status).toBe(401)
  await one.app.stop()
  edit(other, ({ accounts }) => (accounts[0]!.limits = { identities: 1 }))
  await other.app.reread()
  await other.app.stop()
  expect(documentOf(one).accounts[0]!.limits).toBeUndefined()

  const alone = await appliance(one.env, undefined, {})
  expect(documentOf(alone).accounts[0]!.limits).toEqual({ identities: 1 })
  const { pathname, search } = new URL((await url(alone))!)
  const file = await fetch(`${alone.url}${pathname}${search}`)
  expect([
    file.status,
    Buffer.from(await file.arrayBuffer())
      .subarray(0, 2)
      .toString(),
  ]).toEqual([200, 'PK'])
  const rows = async (table: string): Promise<unknown[]> =>
    postgres().run(new URL(one.env['PILLARBOX_DATABASE__URL']!).pathname.slice(1), `SELECT 1 FROM ${table}`)
  for (const table of ['operator_state', 'export_pieces', 'guesses']) expect(await rows(table)).toEqual([])
  edit(alone, ({ accounts }) => (accounts[0]!.limits = { identities: 3 }))
  await alone.app.reread()
  await alone.app.stop()
  // with others again: the newest document counts, and what this box has exported is still there
  await one.restart()
  expect(documentOf(one).accounts[0]!.limits).toEqual({ identities: 3 })
  expect((await fetch(`${one.url}${pathname}${search}`)).status).toBe(200)
})

test('a backup of one of several boxes has the document of all, and each event has its position', async () => {
  const [one, other] = await severalBoxes(postgres())
  await one.call('POST', '/v1/identities', { name: 'Ada' })
  await one.app.stop()
  edit(other, ({ accounts }) => (accounts[0]!.limits = { identities: 7 }))
  await other.app.reread()
  await other.app.stop()
  const url = one.env['PILLARBOX_DATABASE__URL']!
  const name = new URL(url).pathname.slice(1)
  const placed = (await postgres().run(name, 'SELECT id FROM events ORDER BY seq')) as { id: string }[]
  await postgres().run(name, 'UPDATE events SET seq = -1 WHERE seq = (SELECT max(seq) FROM events)')
  const copy = join(folder(), 'copy.db')
  const { state } = await takeServerSnapshot(one.env['PILLARBOX_DATA_DIR']!, parsePostgresUrl(url), copy)
  expect((JSON.parse(state.toString()) as Document).accounts[0]!.limits).toEqual({ identities: 7 })
  const database = new DatabaseSync(copy)
  const rows = database.prepare('SELECT seq, id FROM events ORDER BY seq').all() as { seq: number; id: string }[]
  database.close()
  expect(rows.map(({ id }) => id)).toEqual(placed.map(({ id }) => id))
  expect(rows[0]!.seq).toBeGreaterThan(0)
})

test('a move to SQLite takes along the accounts that were added at another box', async () => {
  const [one, other] = await severalBoxes(postgres())
  await one.app.stop()
  const { id } = await other.app.accounts.add({ name: 'second', email: 'eve@example.com', password })
  await other.app.stop()
  expect(await pillarbox(one, 'move', '--to', 'sqlite')).toMatchObject({ status: 0, errors: '' })
  expect(documentOf(one)).toEqual(documentOf(other))
  const { PILLARBOX_DATABASE__URL: _url, ...env } = one.env
  const alone = await appliance(env)
  expect((await attempt(alone, { email: 'eve@example.com', password })).status).toBe(200)
  expect((await alone.app.accounts.list()).map((account) => account.id)).toContain(id)
})

test('the accounts of a box that is moved or restored for several are those of the box that starts first', async () => {
  const box = await appliance()
  await box.app.accounts.add({ name: 'second', email: 'eve@example.com', password })
  await box.app.stop()
  const passphrase = ['--passphrase-file', passphraseFile(box.directory)]
  const file = join(box.directory, 'box.tar')
  expect(await pillarbox(box, 'backup', file, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  const on = async (database: string): Promise<Appliance> => {
    await emptyDatabase(postgres(), database)
    const settings = { PILLARBOX_DATABASE__URL: postgres().url(database), PILLARBOX_DATABASE__SEVERAL: 'true' }
    return { ...box, env: { ...box.env, ...settings, PILLARBOX_KEYS_DIR: join(box.directory, 'data-keys') } }
  }
  const moved = await on('moved_for_several')
  expect(await pillarbox(moved, 'move', '--to', 'postgres')).toMatchObject({ status: 0, errors: '' })
  const second = await another(moved, {})
  expect(documentOf(second)).toEqual(documentOf(box))
  edit(second, ({ accounts }) => (accounts[0]!.limits = { identities: 1 }))
  await second.app.reread()
  await second.app.stop()

  // the directory of the second box is that of before the restore
  const restored = await on('restored_for_several')
  restored.env['PILLARBOX_DATA_DIR'] = join(folder(), 'data')
  expect(await pillarbox(restored, 'restore', file, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  const again = await another(restored, { PILLARBOX_DATA_DIR: second.env['PILLARBOX_DATA_DIR']! })
  expect(documentOf(again)).toEqual(documentOf(box))
})
