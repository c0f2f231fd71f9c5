import { strict as assert } from 'node:assert'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { generateSync } from 'otplib'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { BackupArchive } from '../../../src/ops/backup/archive/archive.ts'
import { ArchiveWriter } from '../../../src/ops/backup/archive/archive-writer.ts'
import { restoreBackup, type RestoreInput } from '../../../src/ops/backup/restore.ts'
import { verifyBackup } from '../../../src/ops/backup/verify.ts'
import { type Appliance, openAppliance } from '../../support/appliance.ts'
import { person, signIn } from '../../support/people.ts'
import { folder } from '../../support/folder.ts'
import { fill } from '../../keys/sealed.ts'
import { passphraseFile, pillarbox, started } from './command.ts'

let box: Appliance
let close: () => Promise<void>
let withKeys: string
let withoutKeys: string
let key: string
const passphrase = 'correct horse battery'

beforeAll(async () => {
  ;({ box, close } = await openAppliance())
  await fill(box)
  const page = await signIn(box)
  const { body: factor } = await page.call('POST', '/v1/account/totp', { password: person.password })
  const code = generateSync({ secret: factor['secret'] as string })
  assert.equal((await page.call('POST', '/v1/account/totp/confirm', { code })).status, 200)
  const { body: ada } = await box.call('GET', '/v1/identities')
  assert.equal((await box.call('POST', `/v1/identities/${ada.data[0].id}/token`, {})).status, 200)
  await box.call('POST', `/v1/identities/${ada.data[0].id}/emails`, {
    to: 'postmaster@pillarbox.test',
    subject: 'Waits',
    send_at: new Date(Date.now() + 86_400_000).toISOString(),
  })
  withKeys = join(box.directory, 'with.tar')
  withoutKeys = join(box.directory, 'without.tar')
  key = join(box.directory, 'data-keys', 'master.key')
  assert.equal((await pillarbox(box, 'backup', withKeys, '--passphrase-file', passphraseFile(box.directory))).status, 0)
  assert.equal((await pillarbox(box, 'backup', withoutKeys)).status, 0)
}, 300_000)
afterAll(() => close())

const columns = async () => box.app.sealed

/** Restores as the command does, only sooner. */
function restore(directory: string, input: Partial<RestoreInput> & { file: string }) {
  const data_dir = join(directory, 'data')
  return restoreBackup({ data_dir, keys_dir: `${data_dir}-keys`, columns, ...input })
}

test('keys are in a backup only sealed, and nowhere in the clear', async () => {
  const octets = readFileSync(withKeys)
  const master = Buffer.from(readFileSync(key, 'utf8').trim(), 'base64')
  for (const canary of [readFileSync(key), master, Buffer.from(master.toString('hex')), Buffer.from(passphrase)])
    expect(octets.includes(canary)).toBe(false)
  expect((await BackupArchive.open(withKeys)).has('keys.json')).toBe(true)
  expect((await BackupArchive.open(withoutKeys)).has('keys.json')).toBe(false)
}, 300_000)

test('without its keys a backup is not restored before it is said what to give, and nothing is begun', async () => {
  const directory = folder()
  const told = await pillarbox(box, 'restore', withoutKeys, '--data', join(directory, 'data'))
  expect([told.status, told.errors]).toEqual([
    1,
    expect.stringMatching(/contains no keys: add --master-key, .* add --without-keys\. Nothing was changed\.\n$/),
  ])
  await expect(restore(directory, { file: withKeys })).rejects.toMatchObject({
    code: 'key_needed',
    message: expect.stringMatching(/contains encrypted keys: add --passphrase-file/),
  })
  await expect(restore(directory, { file: withKeys, passphrase: 'another horse battery' })).rejects.toMatchObject({
    code: 'wrong_passphrase',
  })
  await expect(restore(directory, { file: withoutKeys, passphrase })).rejects.toMatchObject({ code: 'no_keys' })
  const other = join(directory, 'other.key')
  writeFileSync(other, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 })
  await expect(restore(directory, { file: withoutKeys, master_key: other })).rejects.toMatchObject({ code: 'wrong_master_key' })
  expect(readdirSync(directory)).toEqual(['other.key'])
}, 300_000)

test('a restored box begins with everything that was sealed, whichever way its key comes', async () => {
  const directory = folder()
  const data_dir = join(directory, 'data')
  expect(await restore(directory, { file: withKeys, passphrase })).toMatchObject({
    keys: 'backup',
    waiting: { 'email-release': 1 },
    lost: {},
  })
  expect(readFileSync(`${data_dir}-keys/master.key`, 'utf8')).toBe(readFileSync(key, 'utf8'))
  // the keys are there still: on the machine whose data were lost nobody has to give them
  rmSync(data_dir, { recursive: true })
  expect(await restore(directory, { file: withoutKeys })).toMatchObject({ keys: 'there' })
  rmSync(data_dir, { recursive: true })
  expect(await restore(directory, { file: withKeys, passphrase })).toMatchObject({ keys: 'there' })
  for (const name of ['data', 'data-keys']) rmSync(join(directory, name), { recursive: true })
  expect(await restore(directory, { file: withoutKeys, master_key: key })).toMatchObject({ keys: 'given' })
  for (const name of ['data', 'data-keys']) rmSync(join(directory, name), { recursive: true })
  // a key that is handed over is used where it lies
  expect(await restore(directory, { file: withoutKeys, master_key_file: key })).toMatchObject({ keys: 'there' })
  expect(existsSync(`${data_dir}-keys`)).toBe(false)
  const restored = await started(data_dir, { ...box.env, PILLARBOX_MASTER_KEY_FILE: key })
  const { body } = await restored.call('GET', '/v1/webhooks')
  expect(body.data[0].headers).toEqual({ Authorization: 'Bearer of theirs' })
}, 300_000)

test('without the keys what they sealed is given up, and the box works', async () => {
  const directory = folder()
  const data = join(directory, 'data')
  const told = await pillarbox(box, 'restore', withoutKeys, '--data', data, '--without-keys', '--json')
  expect([told.status, told.errors]).toEqual([0, ''])
  expect(JSON.parse(told.output)).toMatchObject({
    keys: 'new',
    lost: { 'totp_secrets.secret': 1, 'webhooks.secret': 1, 'logins.second_factor': 1 },
    warnings: [
      expect.stringMatching(/revoked/),
      expect.stringMatching(/^Its queue contains .*scheduled e-mails: 1/),
      expect.stringMatching(/^Discarded/),
    ],
  })
  const restored = await started(data, box.env)
  const { body: identities } = await restored.call('GET', '/v1/identities')
  const at = `/v1/identities/${identities.data[0].id}`
  expect((await restored.call('GET', `${at}/totp`)).body.data).toEqual([])
  expect((await restored.call('GET', '/v1/webhooks')).body.data).toEqual([])
  expect((await restored.call('POST', `${at}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'X' })).status).toBe(201)
  expect((await restored.call('GET', `${at}/emails?direction=outbound`)).body.data).toMatchObject([{ subject: 'Waits' }])
  expect((await restored.call('GET', '/v1/domains')).status).toBe(200)
  // tokens are signed anew, and whoever signs in needs their password only
  expect((await restored.call('POST', `${at}/token`, {})).status).toBe(200)
  const login = { headers: { Origin: restored.url } }
  expect((await restored.call('POST', '/v1/session', person, { key: null, ...login })).body).toMatchObject({
    totp_enabled: false,
  })
}, 300_000)

test('nothing is restored over anything', async () => {
  const directory = folder()
  const data = join(directory, 'data')
  mkdirSync(data)
  writeFileSync(join(data, 'notes.txt'), 'mine')
  const told = await pillarbox(box, 'restore', withKeys, '--data', data, '--passphrase-file', passphraseFile(directory))
  expect([told.status, told.errors]).toEqual([
    1,
    expect.stringMatching(/data is not empty \(notes\.txt\): .*; nothing was changed\.\n$/),
  ])
  expect(readdirSync(data)).toEqual(['notes.txt'])
  rmSync(join(data, 'notes.txt'))
  // keys of another box
  mkdirSync(`${data}-keys`, { mode: 0o700 })
  const others = `${Buffer.alloc(32, 7).toString('base64')}\n`
  writeFileSync(`${data}-keys/master.key`, others, { mode: 0o600 })
  await expect(restore(directory, { file: withKeys, passphrase })).rejects.toMatchObject({ code: 'wrong_master_key' })
  expect(readFileSync(`${data}-keys/master.key`, 'utf8')).toBe(others)
  expect(readdirSync(data)).toEqual([])
  rmSync(`${data}-keys/master.key`)
  writeFileSync(`${data}-keys/stray`, 'x')
  await expect(restore(directory, { file: withKeys, passphrase })).rejects.toMatchObject({ code: 'not_empty' })
  expect(readdirSync(data)).toEqual([])
  await expect(restore(join(directory, 'nowhere'), { file: withKeys, passphrase })).rejects.toMatchObject({
    code: 'no_directory',
  })
}, 300_000)

test('a backup is not written over anything, nor into the box, nor of what is none', async () => {
  const backup = (...words: string[]) => pillarbox(box, 'backup', ...words)
  const before = readFileSync(withKeys)
  expect(await backup(withKeys)).toMatchObject({
    status: 1,
    output: '',
    errors: expect.stringMatching(/exists already, and was not changed/),
  })
  expect(readFileSync(withKeys).equals(before)).toBe(true)
  expect((await backup(join(box.directory, 'data', 'b.tar'))).errors).toMatch(/is in the data directory/)
  expect((await backup(join(box.directory, 'no', 'b.tar'))).errors).toMatch(
    /The directory .*no does not exist\. Create it first\./,
  )
  const short = join(folder(), 'short')
  writeFileSync(short, 'short\n', { mode: 0o600 })
  expect((await backup('b.tar', '--passphrase-file', short)).errors).toMatch(/must have at least 12 characters/)
  writeFileSync(short, 'long enough for everybody\n', { mode: 0o644 })
  rmSync(short)
  writeFileSync(short, 'long enough for everybody\n', { mode: 0o644 })
  expect((await backup('b.tar', '--passphrase-file', short)).errors).toMatch(
    /every user can read it \(mode 644\); set it to 0600/,
  )
  expect(await backup('b.tar', '--data', folder())).toMatchObject({
    status: 1,
    errors: expect.stringMatching(/^There is no box in /),
  })
  const foreign = folder()
  cpSync(join(box.directory, 'data', 'state.json'), join(foreign, 'state.json'))
  const database = new DatabaseSync(join(foreign, 'pillarbox.db'))
  database.exec('CREATE TABLE t (x)')
  database.close()
  expect((await backup('b.tar', '--data', foreign)).errors).toMatch(
    /pillarbox\.db is not a Pillarbox database\. Nothing was backed up/,
  )
  writeFileSync(join(foreign, 'pillarbox.db'), 'SQLite format 3\0 and then something else'.padEnd(8192, 'x'))
  expect((await backup('b.tar', '--data', foreign)).errors).toMatch(/pillarbox\.db is damaged/)
  expect(await backup()).toMatchObject({ status: 2 })
  expect(await backup('b.tar', '--auto')).toMatchObject({ status: 2 })
  expect(existsSync(join(box.directory, 'b.tar'))).toBe(false)
  expect(readdirSync(box.directory).filter((name) => name.includes('.part'))).toEqual([])
}, 300_000)

/** The backup with other contents in some of its files, checksums included. */
async function rewritten(contents: Partial<Record<'pillarbox.db.zst' | 'state.json' | 'keys.json', Buffer>>): Promise<string> {
  const archive = await BackupArchive.open(withKeys)
  const { entries, ...manifest } = archive.manifest
  const file = join(folder(), 'hostile.tar')
  const writer = new ArchiveWriter(file, manifest)
  for (const { name } of entries) await writer.add(name, contents[name] ? [contents[name]] : archive.stream(name))
  writer.finish()
  writer.close()
  return file
}

test('JSON in an archive that would take much memory is not parsed', async () => {
  const parse = vi.spyOn(JSON, 'parse')
  const longest = () => Math.max(...parse.mock.calls.map(([text]) => text.length))
  const deep = Buffer.from('['.repeat(1024 * 1024))
  const long = Buffer.from('['.repeat(33 * 1024 * 1024))
  for (const state of [deep, long]) {
    const file = await rewritten({ 'state.json': state })
    await expect(verifyBackup({ file, passphrase, columns })).rejects.toMatchObject({ code: 'backup_damaged' })
    await expect(restore(folder(), { file, passphrase })).rejects.toMatchObject({ code: 'backup_damaged' })
  }
  const file = await rewritten({ 'keys.json': deep })
  await expect(verifyBackup({ file, passphrase, columns })).rejects.toMatchObject({ code: 'backup_damaged' })
  expect(longest()).toBeLessThan(100_000)
}, 300_000)

test('a hostile archive writes nowhere but where it should, and no more than it says', async () => {
  const archive = await BackupArchive.open(withKeys)
  const { entries, ...manifest } = archive.manifest
  expect(entries).toHaveLength(3)
  const file = join(folder(), 'bomb.tar')
  const writer = new ArchiveWriter(file, { ...manifest, database_size: 4096 })
  await writer.add('pillarbox.db.zst', archive.stream('pillarbox.db.zst'))
  await writer.add('state.json', [Buffer.from(await archive.text('state.json'))])
  writer.finish()
  writer.close()
  const directory = folder()
  await expect(restore(directory, { file, master_key: key })).rejects.toMatchObject({
    code: 'backup_damaged',
    message: expect.stringMatching(/its database has \d+ bytes, but must have 4096/),
  })
  expect(readdirSync(directory)).toEqual([])
}, 300_000)
