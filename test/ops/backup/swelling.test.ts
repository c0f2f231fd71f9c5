import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { deflateRawSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import type { BackupArchive } from '../../../src/ops/backup/archive/archive.ts'
import { inspectBlobs } from '../../../src/ops/backup/inspect.ts'
import { folder } from '../../support/folder.ts'

const mebibyte = 1024 * 1024

/** A database with one deflated blob, that says to have `size` bytes. */
function database(content: Buffer, size: number): string {
  const file = join(folder(), 'a.db')
  const blobs = new DatabaseSync(file)
  blobs.exec('CREATE TABLE blobs (id INTEGER PRIMARY KEY, size INTEGER, sha256 BLOB, deflated INTEGER, bytes BLOB)')
  blobs.prepare('INSERT INTO blobs VALUES (1, ?, NULL, 1, ?)').run(size, deflateRawSync(content))
  blobs.close()
  return file
}

const archive = { file: 'a.tar' } as BackupArchive

test('a blob of a backup is unpacked in little memory, and no further than its size', async () => {
  const allocated = vi.spyOn(Buffer, 'concat')
  const zeros = Buffer.alloc(100 * mebibyte)
  expect(await inspectBlobs(archive, database(zeros, zeros.length))).toBe(1)
  for (const size of [zeros.length - 1, zeros.length + 1, mebibyte, 0])
    await expect(async () => inspectBlobs(archive, database(zeros, size))).rejects.toMatchObject({ code: 'backup_damaged' })
  for (const { value } of allocated.mock.results) expect((value as Buffer).length).toBeLessThan(mebibyte)
})
