import fs, { fstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { type BackupInput, makeBackup } from '../../../src/ops/backup/make.ts'
import { BackupDirectory } from '../../../src/ops/backup/backup-directory.ts'
import { verifyBackup } from '../../../src/ops/backup/verify.ts'
import { appliance } from '../../support/appliance.ts'

const { fsyncSync, closeSync, rmSync } = fs
const { rm } = fs.promises

afterEach(recover)

function recover(): void {
  Object.assign(fs, { fsyncSync, closeSync, rmSync })
  fs.promises.rm = rm
  syncBuiltinESMExports()
}

function fail(calls: Partial<Pick<typeof fs, 'fsyncSync' | 'closeSync' | 'rmSync'>>): void {
  Object.assign(fs, calls)
  syncBuiltinESMExports()
}

function failed(): never {
  throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
}

const failingDirectory = {
  fsyncSync: (handle: number) => (fstatSync(handle).isDirectory() ? failed() : fsyncSync(handle)),
}

interface Place {
  input: BackupInput
  shelf: string
  isWhole: () => Promise<boolean>
}

async function place(): Promise<Place> {
  const box = await appliance()
  await box.app.stop()
  const shelf = join(box.directory, 'shelf')
  mkdirSync(shelf)
  const data_dir = box.env['PILLARBOX_DATA_DIR']!
  const keys_dir = `${data_dir}-keys`
  const file = join(shelf, 'box.tar')
  const about = { program_version: '0.1.0', mail_domain: 'pillarbox.test', created_at: new Date().toISOString() }
  const input = { file, data_dir, keys_dir, database: undefined, objects: undefined, ...about }
  const columns = async () => box.app.sealed
  const isWhole = async () => (await verifyBackup({ file, master_key: join(keys_dir, 'master.key'), columns })) !== undefined
  return { input, shelf, isWhole }
}

test('where the name of a backup cannot be forced to disk, there is none', async () => {
  const { input, shelf } = await place()
  fail(failingDirectory)
  await expect(makeBackup(input)).rejects.toMatchObject({ code: 'backup_failed' })
  expect(readdirSync(shelf)).toEqual([])
})

test('a backup that has replaced another stays, and it is said that a crash can undo that', async () => {
  const { input, shelf, isWhole } = await place()
  writeFileSync(input.file, 'another')
  fail(failingDirectory)
  const message = expect.stringMatching(
    /box\.tar was replaced by the new backup, which is complete, but a crash .* can undo that/,
  )
  await expect(makeBackup({ ...input, force: true })).rejects.toMatchObject({ code: 'backup_failed', message })
  expect(readdirSync(shelf)).toEqual(['box.tar'])
  recover()
  expect(await isWhole()).toBe(true)
})

test('a backup whose name can neither be forced to disk nor removed is said to be there', async () => {
  const { input } = await place()
  fail({ ...failingDirectory, rmSync: (path, options) => (path === input.file ? failed() : rmSync(path, options)) })
  const message = expect.stringMatching(/box\.tar could not be removed again, and is complete, but a crash .* can undo that/)
  await expect(makeBackup(input)).rejects.toMatchObject({ code: 'backup_failed', message })
})

test('a backup is made though what is closed or removed behind it fails', async () => {
  const { input, shelf, isWhole } = await place()
  fail({
    closeSync: (handle) => {
      const isArchive = fs.readlinkSync(`/proc/self/fd/${handle}`) === input.file
      closeSync(handle)
      if (isArchive) failed()
    },
    // the first one removes what is left of an earlier copy
    rmSync: (path, options) => (fs.existsSync(input.file) && path === `${input.file}.part.db` ? failed() : rmSync(path, options)),
  })
  expect(await makeBackup(input)).toMatchObject({ file: input.file })
  expect(readdirSync(shelf)).toEqual(['box.tar', 'box.tar.part.db'])
  recover()
  expect(await isWhole()).toBe(true)
})

test('a backup is made though an older one cannot be removed, which is said', async () => {
  const { input, shelf } = await place()
  const directory = new BackupDirectory({ directory: shelf, keep: 1 })
  const { file: first } = await directory.add({ ...input, created_at: '2026-01-01T00:00:00.000Z' })
  fs.promises.rm = async () => failed()
  syncBuiltinESMExports()
  const second = await directory.add({ ...input, created_at: '2026-01-02T00:00:00.000Z' })
  expect(second).toMatchObject({
    removed: [],
    warnings: [expect.any(String), expect.stringContaining('could not be removed: EIO')],
  })
  expect(readdirSync(shelf).map((name) => join(shelf, name))).toEqual([first, second.file])
  expect(readFileSync(second.file).length).toBe(second.size)
})
