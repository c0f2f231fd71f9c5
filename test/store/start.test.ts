import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, it } from 'vitest'
import { sql } from '../../src/store/database.ts'
import { Lock } from '../../src/store/lock.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite.ts'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'
import { openedWithTable, quiet } from './opened.ts'

/** A database with some content, closed. */
async function filled(directory: string): Promise<string> {
  const { file, database } = await openedWithTable(directory)
  for (let row = 0; row < 300; row++)
    await database.transaction((tx) => tx.run(sql`INSERT INTO t (v) VALUES (${'x'.repeat(3000)})`))
  await database.close()
  return file
}

/** Checks that the start refuses with a sentence that names the file and what to do, and changes no octet. */
function expectRefusal(file: string, expected: boolean, sentence: RegExp): void {
  const paths = [file, `${file}-wal`]
  const contents = (): (string | null)[] =>
    paths.map((path) => (existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : null))
  const before = contents()
  let message = ''
  try {
    prepare(file, expected)
  } catch (error) {
    message = (error as Error).message
  }
  expect(message).toMatch(sentence)
  expect(message).toContain(file)
  expect(message).toMatch(/restore|newer program|move it away/i)
  expect(contents()).toEqual(before)
}

function change(file: string, change: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file)
  change(bytes)
  writeFileSync(file, bytes)
}

describe('the start', () => {
  let file: string
  beforeEach(async () => {
    file = await filled(folder())
  })

  it('takes what it wrote itself, and makes what is not there for its owner only', async () => {
    prepare(file, true)
    const fresh = join(folder(), 'box.db')
    prepare(fresh, false)
    expect(statSync(fresh).mode & 0o777).toBe(0o600)
    prepare(fresh, true)
  })

  it('takes a log that a killed process left, with all that is in it', async () => {
    const database = await SqliteDatabase.open(file, quiet)
    await database.transaction((tx) => tx.run(sql`INSERT INTO t (v) VALUES ('only in the log')`))
    const copy = join(folder(), 'box.db')
    cpSync(file, copy)
    cpSync(`${file}-wal`, `${copy}-wal`)
    await database.close()
    prepare(copy, true)
    const again = await SqliteDatabase.open(copy, quiet)
    expect(await again.get(sql`SELECT v FROM t ORDER BY id DESC LIMIT 1`)).toMatchObject({ v: 'only in the log' })
    await again.close()
  })

  it('refuses a missing file when there was one', () => {
    rmSync(file)
    expectRefusal(file, true, /is missing/)
    expect(existsSync(file)).toBe(false)
  })

  it('refuses an empty file when there was a database, and takes it when there was none', () => {
    truncateSync(file)
    expectRefusal(file, true, /is empty/)
    prepare(file, false)
  })

  it('refuses a database without tables when there was one', () => {
    rmSync(file)
    const database = new DatabaseSync(file)
    database.exec('PRAGMA journal_mode = WAL')
    database.close()
    expectRefusal(file, true, /holds nothing/)
  })

  it('refuses a lost file whose log is still there', () => {
    writeFileSync(`${file}-wal`, Buffer.alloc(5000, 1))
    rmSync(file)
    expectRefusal(file, false, /is missing, although its log/)
  })

  it('refuses a damaged header', () => {
    change(file, (bytes) => bytes.fill(0, 0, 100))
    expectRefusal(file, true, /not a SQLite database/)
  })

  it('refuses a damaged page', () => {
    change(file, (bytes) => bytes.fill(0xff, 4096 * 50, 4096 * 51))
    expectRefusal(file, true, /is damaged/)
  })

  it('refuses half a file', () => {
    truncateSync(file, Math.floor(statSync(file).size / 8192) * 4096)
    expectRefusal(file, true, /is damaged/)
  })

  it('refuses a text file', () => {
    writeFileSync(file, '{"not":"a database"}'.repeat(100))
    expectRefusal(file, true, /not a SQLite database/)
  })

  it('refuses a log that is none', () => {
    writeFileSync(`${file}-wal`, Buffer.alloc(5000, 0x41))
    expectRefusal(file, true, /-wal is damaged/)
  })

  it('takes a log whose making was cut off: it never held anything', () => {
    writeFileSync(`${file}-wal`, Buffer.alloc(20, 0x41))
    prepare(file, true)
  })

  it('refuses a newer database', () => {
    const database = new DatabaseSync(file)
    database.exec('PRAGMA user_version = 9999')
    database.close()
    expectRefusal(file, true, /newer Pillarbox \(version 9999/)
  })

  it('refuses another program’s database', () => {
    const database = new DatabaseSync(file)
    database.exec('PRAGMA application_id = 7')
    database.close()
    expectRefusal(file, false, /not a Pillarbox database/)
  })

  it('refuses another program’s database with a log of its own, and leaves both alone', () => {
    const other = join(folder(), 'other.db')
    const database = new DatabaseSync(other)
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)')
    cpSync(other, file)
    cpSync(`${other}-wal`, `${file}-wal`)
    database.close()
    expectRefusal(file, false, /not a Pillarbox database/)
  })
})

describe('the lock', () => {
  it('keeps a second process out, names the first, and goes with it', async () => {
    const directory = folder()
    const holder = child('store/children/hold-lock.ts', [directory])
    await holder.until(1)
    expect(() => new Lock(directory)).toThrow(/in use by another Pillarbox process \(process \d+\)\. Stop it first/)
    expect(() => new Lock(directory)).toThrow(directory)
    await holder.kill()
    const lock = new Lock(directory)
    const second = child('store/children/hold-lock.ts', [directory])
    expect(await second.ended).toMatchObject({ errors: expect.stringContaining(`process ${process.pid}`) as string })
    lock.release()
    new Lock(directory).release()
    expect(statSync(join(directory, 'lock')).mode & 0o777).toBe(0o600)
  })

  it('says what is wrong with a lock file that is none', () => {
    const directory = folder()
    writeFileSync(join(directory, 'lock'), 'something else'.repeat(100))
    expect(() => new Lock(directory)).toThrow(/lock cannot be locked: .* Remove it/)
  })
})
