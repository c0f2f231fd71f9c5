import { strict as assert } from 'node:assert'
import { cpSync, openSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BackupArchive } from '../../../src/ops/backup/archive/archive.ts'
import { makeBackup } from '../../../src/ops/backup/make.ts'
import { verifyBackup } from '../../../src/ops/backup/verify.ts'
import { type Appliance, deliver, message, openAppliance } from '../../support/appliance.ts'
import { folder } from '../../support/folder.ts'
import { passphraseFile, pillarbox } from './command.ts'

let box: Appliance
let close: () => Promise<void>
let whole: string

beforeAll(async () => {
  ;({ box, close } = await openAppliance())
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Kept' }, 'Some words that stay.') })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Large' }, 'Words, many of them.\r\n'.repeat(100_000)) })
  await box.call('POST', `/v1/identities/${ada.id}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'X' })
  whole = join(box.directory, 'whole.tar')
  assert.equal((await pillarbox(box, 'backup', whole, '--passphrase-file', passphraseFile(box.directory))).status, 0)
})
afterAll(() => close())

async function check(file: string): Promise<void> {
  await (await BackupArchive.open(file)).check()
}

/** A copy of the whole backup, to be damaged. */
function copy(): string {
  const file = join(folder(), 'copy.tar')
  cpSync(whole, file)
  return file
}

test('any changed byte of an archive is noticed', async () => {
  const file = copy()
  const octets = readFileSync(file)
  await check(file)
  const handle = openSync(file, 'r+')
  const manifest = 512 + octets.indexOf('}\n', 512)
  const database = octets.indexOf('pillarbox.db.zst\0')
  // the size is octal (POSIX pax, ustar)
  const size = parseInt(octets.toString('latin1', database + 124, database + 135), 8)
  const unnoticed: number[] = []
  for (let place = 0; place < octets.length; place += 1) {
    // what a checksum covers as a whole need not be asked for each of its bytes
    const isCovered = (place > 1024 && place < manifest) || (place > database + 512 && place < database + 512 + size - 8)
    if (isCovered && place % 61 !== 0) continue
    writeSync(handle, Uint8Array.of(octets[place]! ^ (1 << (place % 8))), 0, 1, place)
    const noticed = await check(file).then(
      () => false,
      (error: unknown) => ['backup_damaged', 'not_a_backup', 'backup_newer'].includes((error as { code: string }).code),
    )
    if (!noticed) unnoticed.push(place)
    writeSync(handle, octets, place, 1, place)
  }
  expect(unnoticed).toEqual([])
  await check(file)
}, 300_000)

test('a backup that was cut off anywhere, or has something behind it, is noticed', async () => {
  const file = copy()
  const octets = readFileSync(file)
  for (let size = octets.length - 1; size >= 0; size -= size % 512 === 0 ? 511 : size % 512) {
    truncateSync(file, size)
    await expect(check(file)).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:backup_damaged|not_a_backup)$/),
    })
    writeFileSync(file, octets)
  }
  writeFileSync(file, Buffer.concat([octets, Buffer.alloc(512)]))
  await expect(check(file)).rejects.toMatchObject({ message: expect.stringMatching(/512 bytes follow its end/) })
}, 300_000)

test('the command names what is wrong, answers 1, and leaves nothing behind', async () => {
  expect(statSync(whole).mode & 0o777).toBe(0o600)
  const file = copy()
  const octets = readFileSync(file)
  const changed = async (place: number, ...options: string[]): Promise<string> => {
    const other = Buffer.from(octets)
    other[place]! ^= 4
    writeFileSync(file, other)
    const { status, output, errors } = await pillarbox(box, 'verify', file, ...options)
    expect([status, output]).toEqual([1, ''])
    return errors
  }
  expect(await changed(octets.indexOf('pillarbox.db.zst\0') + 600)).toMatch(
    /copy\.tar is damaged: the checksum of pillarbox\.db\.zst is not that of its manifest\. Use another backup; nothing was changed\.\n$/,
  )
  expect(await changed(octets.indexOf('"created_at": "20') + 20)).toMatch(/is damaged: /)
  expect(JSON.parse(await changed(octets.indexOf('SHA256SUMS') + 520, '--json'))).toMatchObject({
    error: { code: 'backup_damaged', message: expect.stringContaining('SHA256SUMS') },
  })
  const middle = octets.indexOf('pillarbox.db.zst\0') + 700
  truncateSync(file, middle)
  expect((await pillarbox(box, 'verify', file)).errors).toContain(`is damaged: it ends after ${middle} bytes`)
  expect(readdirSync(dirname(file))).toEqual(['copy.tar'])
}, 300_000)

test('what is no backup, or not there, or of a newer program, is told apart', async () => {
  const file = copy()
  const octets = readFileSync(file)
  const told = async (name: string): Promise<string> => {
    const { status, errors } = await pillarbox(box, 'verify', name)
    expect(status).toBe(1)
    return errors
  }
  expect(await told('nowhere.tar')).toBe('nowhere.tar does not exist.\n')
  expect(await told(box.directory)).toBe(`${box.directory} is not a file.\n`)
  // its first page cannot be read, like a page of a failing disk
  expect(await told('/proc/self/mem')).toMatch(/^\/proc\/self\/mem cannot be read: EIO\b.*\n$/)
  writeFileSync(file, 'PK something else')
  expect(await told(file)).toBe(`${file} is not a backup of Pillarbox.\n`)
  writeFileSync(file, Buffer.from(octets.toString('latin1').replace('"format_version": 1', '"format_version": 2'), 'latin1'))
  expect(await told(file)).toMatch(
    /was made by a newer Pillarbox \(0\.1\.0, format 2; this one reads 1\)\. Use the newer program/,
  )
}, 300_000)

test('a database that is wrong inside a right archive is noticed', async () => {
  const damage: [(database: DatabaseSync) => void, RegExp][] = [
    [
      (database) => database.exec(`UPDATE blobs SET bytes = zeroblob(length(bytes)) WHERE deflated = 0 OR id = 1`),
      /the bytes of blob 1 do not match/,
    ],
    [
      (database) => database.exec('UPDATE blob_pieces SET bytes = zeroblob(length(bytes)) WHERE place = 2'),
      /the bytes of blob \d+ do not match/,
    ],
    [
      (database) => database.exec('UPDATE totp_secrets SET secret = zeroblob(length(secret))'),
      /totp_secrets\.secret of row 1 cannot be decrypted/,
    ],
    [(database) => database.exec('DROP TABLE sms_seen'), /cannot be migrated: .* the table sms_seen is missing/],
    [
      (database) => database.exec('PRAGMA user_version = 999'),
      /contains a database of a newer Pillarbox \(0\.1\.0, version 999; this one knows \d+\)/,
    ],
  ]
  for (const [change, told] of damage) {
    const directory = folder()
    const data = join(directory, 'data')
    await box.app.stop()
    cpSync(box.env['PILLARBOX_DATA_DIR']!, data, { recursive: true })
    cpSync(`${box.env['PILLARBOX_DATA_DIR']!}-keys`, `${data}-keys`, { recursive: true })
    await box.restart()
    const database = new DatabaseSync(join(data, 'pillarbox.db'))
    change(database)
    database.close()
    const file = join(directory, 'b.tar')
    const passphrase = 'a passphrase of some length'
    const input = {
      file,
      data_dir: data,
      database: undefined,
      objects: undefined,
      keys_dir: `${data}-keys`,
      passphrase,
      program_version: '0.1.0',
      mail_domain: 'pillarbox.test',
    }
    await makeBackup({ ...input, created_at: new Date().toISOString() })
    const columns = async () => box.app.sealed
    await expect(verifyBackup({ file, passphrase, columns })).rejects.toMatchObject({ message: expect.stringMatching(told) })
  }
}, 300_000)
