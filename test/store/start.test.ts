import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { sql } from '../../src/store/database.ts'
import { DirectoryLock } from '../../src/store/lock.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'
import { openedWithTable, quiet } from './opened.ts'

/** A database with some content, closed. */
async function filled(directory: string): Promise<string> {
  const { file, database } = await openedWithTable(directory)
  await database.transaction(async (tx) => {
    for (let row = 0; row < 300; row++) await tx.run(sql`INSERT INTO t (v) VALUES (${'x'.repeat(3000)})`)
  })
  await database.close()
  return file
}

/** What the start says, and whether it left every octet as it was. */
function refusal(file: string, expected: boolean): { message: string; untouched: boolean } {
  const paths = [file, `${file}-wal`]
  const contents = (): string =>
    paths.map((path) => (existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'missing')).join()
  const before = contents()
  try {
    prepare(file, expected)
    return { message: 'accepted', untouched: false }
  } catch (error) {
    return { message: (error as Error).message, untouched: contents() === before }
  }
}

/** A sentence that begins with the file's name and ends with what to do. */
function sentence(file: string, trouble: RegExp): unknown {
  const remedy = /(Restore a backup|Run the newer program|Move it away)/
  const name = file.replaceAll('.', String.raw`\.`)
  return {
    message: expect.stringMatching(new RegExp(`^${name}.*${trouble.source}.*${remedy.source}`)) as unknown,
    untouched: true,
  }
}

function damage(file: string, change: (bytes: Buffer) => void): void {
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
    expect(() => prepare(fresh, true)).not.toThrow()
  })

  it('takes a log that a killed process left, with all that is in it', async () => {
    const database = await SqliteDatabase.open(file, quiet)
    onTestFinished(() => database.close())
    await database.transaction((tx) => tx.run(sql`INSERT INTO t (v) VALUES ('only in the log')`))
    const copy = join(folder(), 'box.db')
    cpSync(file, copy)
    cpSync(`${file}-wal`, `${copy}-wal`)
    await database.close()
    prepare(copy, true)
    const again = await SqliteDatabase.open(copy, quiet)
    onTestFinished(() => again.close())
    expect(await again.get(sql`SELECT v FROM t ORDER BY id DESC LIMIT 1`)).toMatchObject({ v: 'only in the log' })
  })

  it('refuses a missing file when there was one', () => {
    rmSync(file)
    expect(refusal(file, true)).toEqual(sentence(file, /is missing/))
    expect(existsSync(file)).toBe(false)
  })

  it('refuses an empty file when there was a database, and takes it when there was none', () => {
    truncateSync(file)
    expect(refusal(file, true)).toEqual(sentence(file, /is empty/))
    expect(() => prepare(file, false)).not.toThrow()
  })

  it('refuses a database without tables when there was one', () => {
    rmSync(file)
    const database = new DatabaseSync(file)
    database.exec('PRAGMA journal_mode = WAL')
    database.close()
    expect(refusal(file, true)).toEqual(sentence(file, /is empty/))
  })

  it('refuses a lost file whose log is still there', () => {
    writeFileSync(`${file}-wal`, Buffer.alloc(5000, 1))
    rmSync(file)
    expect(refusal(file, false)).toEqual(sentence(file, /is missing, although its log/))
  })

  it('refuses a damaged header', () => {
    damage(file, (bytes) => bytes.fill(0, 0, 100))
    expect(refusal(file, true)).toEqual(sentence(file, /not a SQLite database/))
  })

  it('refuses a damaged page', () => {
    damage(file, (bytes) => bytes.fill(0xff, 4096 * 50, 4096 * 51))
    expect(refusal(file, true)).toEqual(sentence(file, /is damaged/))
  })

  it('refuses half a file', () => {
    truncateSync(file, Math.floor(statSync(file).size / 8192) * 4096)
    expect(refusal(file, true)).toEqual(sentence(file, /is damaged/))
  })

  it('refuses a text file', () => {
    writeFileSync(file, '{"not":"a database"}'.repeat(100))
    expect(refusal(file, true)).toEqual(sentence(file, /not a SQLite database/))
  })

  it('refuses a log that is none', () => {
    writeFileSync(`${file}-wal`, Buffer.alloc(5000, 0x41))
    expect(refusal(file, true)).toEqual(sentence(file, /-wal is damaged/))
  })

  it('takes a log whose making was cut off: it never held anything', () => {
    writeFileSync(`${file}-wal`, Buffer.alloc(20, 0x41))
    expect(() => prepare(file, true)).not.toThrow()
  })

  it('refuses a newer database', () => {
    const database = new DatabaseSync(file)
    database.exec('PRAGMA user_version = 9999')
    database.close()
    expect(refusal(file, true)).toEqual(sentence(file, /newer Pillarbox \(version 9999/))
  })

  it('refuses another program’s database', () => {
    const database = new DatabaseSync(file)
    database.exec('PRAGMA application_id = 7')
    database.close()
    expect(refusal(file, false)).toEqual(sentence(file, /not a Pillarbox database/))
  })

  it('refuses another program’s database with a log of its own, and leaves both alone', () => {
    const other = join(folder(), 'other.db')
    const database = new DatabaseSync(other)
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)')
    cpSync(other, file)
    cpSync(`${other}-wal`, `${file}-wal`)
    database.close()
    expect(refusal(file, false)).toEqual(sentence(file, /not a Pillarbox database/))
  })
})

describe('the lock', () => {
  it('keeps a second process out, names the first, and goes with it', async () => {
    const directory = folder()
    const holder = child('store/children/hold-lock.ts', [directory])
    await holder.until(1)
    expect(() => new DirectoryLock(directory)).toThrow(/in use by another Pillarbox process \(process \d+\)\. Stop it first/)
    expect(() => new DirectoryLock(directory)).toThrow(directory)
    await holder.kill()
    const lock = new DirectoryLock(directory)
    lock.note()
    const second = child('store/children/hold-lock.ts', [directory])
    expect(await second.ended).toMatchObject({ errors: expect.stringContaining(`process ${process.pid}`) as string })
    lock.release()
    new DirectoryLock(directory).release()
    expect(statSync(join(directory, 'lock')).mode & 0o777).toBe(0o600)
  })

  it('says what is wrong with a lock file that is none', () => {
    const directory = folder()
    writeFileSync(join(directory, 'lock'), 'something else'.repeat(100))
    expect(() => new DirectoryLock(directory)).toThrow(/lock cannot be locked: .* Remove it/)
  })
})
