import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sql } from '../../src/store/database.ts'
import { DurableReader } from '../../src/store/sqlite/reader.ts'
import { Prepared } from '../../src/store/sqlite/statements.ts'
import { folder } from '../support/folder.ts'

test('a read error of the disk while a commit is hidden leaves the reader usable, and it shows what was committed', () => {
  const file = join(folder(), 'a.db')
  const writer = new DatabaseSync(file)
  writer.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (v); INSERT INTO t VALUES (1)')
  const reader = new DurableReader(file)
  onTestFinished(() => {
    reader.close()
    writer.close()
  })
  const values = (): unknown[] => reader.all(sql`SELECT v FROM t ORDER BY v`)
  reader.hideCommit()
  writer.exec('INSERT INTO t VALUES (2)')
  expect(values()).toEqual([{ v: 1 }])
  const failing = vi.spyOn(Prepared.prototype, 'run').mockImplementation(() => {
    throw new Error('database disk image is malformed')
  })
  reader.showCommit()
  failing.mockRestore()
  expect(values()).toEqual([{ v: 1 }, { v: 2 }])
  reader.hideCommit()
  writer.exec('INSERT INTO t VALUES (3)')
  expect(values()).toHaveLength(2)
  reader.showCommit()
  expect(values()).toHaveLength(3)
  reader.close()
  expect(() => values()).toThrow('stopping')
})

test.each([
  ['SQLITE_IOERR_READ', 'disk I/O error', 266],
  // what SQLite makes of EIO
  ['SQLITE_CORRUPT', 'database disk image is malformed', 11],
  ['SQLITE_CANTOPEN', 'unable to open database file', 14],
])('a read that the disk fails (%s) is a fault of the store, which may be tried again', (_name, message, errcode) => {
  const file = join(folder(), 'a.db')
  const writer = new DatabaseSync(file)
  writer.exec('CREATE TABLE t (v)')
  const reader = new DurableReader(file)
  onTestFinished(() => {
    reader.close()
    writer.close()
  })
  for (const method of ['get', 'all'] as const) {
    vi.spyOn(Prepared.prototype, method).mockImplementation(() => {
      throw Object.assign(new Error(message), { errcode })
    })
    expect(() => reader[method](sql`SELECT v FROM t`)).toThrow(
      expect.objectContaining({ type: 'internal_error', code: 'storage_unavailable', retryAfter: 5 }),
    )
  }
})
