import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { prepare } from '../../src/store/migrate.ts'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'
import { fillDisk, smallDisk } from '../support/small-disk.ts'

const first = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes (text) VALUES ('old')"
const long = `CREATE TABLE extra (x);
  INSERT INTO notes (text) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000) SELECT 'new ' || i FROM n;
  INSERT INTO extra SELECT text FROM notes; UPDATE notes SET text = upper(text)`

/** A folder of migrations. */
function migrations(...texts: string[]): string {
  const path = join(folder(), 'migrations')
  mkdirSync(path)
  for (const [index, text] of texts.entries()) writeFileSync(join(path, `000${index + 1}_step.sql`), text)
  return path
}

function look(file: string): { version: number; notes: number; extra: boolean; sound: string } {
  const database = new DatabaseSync(file)
  const value = (query: string): unknown => Object.values(database.prepare(query).get() as object)[0]
  const seen = {
    version: value('PRAGMA user_version') as number,
    notes: value('SELECT count(*) FROM notes') as number,
    extra: value(`SELECT count(*) FROM sqlite_schema WHERE name = 'extra'`) === 1,
    sound: value('PRAGMA integrity_check') as string,
  }
  database.close()
  return seen
}

describe('migrations', () => {
  it('run once each, in order', () => {
    const file = join(folder(), 'box.db')
    prepare(file, false, migrations(first))
    const both = migrations(first, 'ALTER TABLE notes ADD COLUMN mark')
    prepare(file, true, both)
    prepare(file, true, both)
    expect(look(file)).toEqual({ version: 2, notes: 1, extra: false, sound: 'ok' })
  })

  it('keep a copy of a database with content first, for its owner only; and none of a new one', () => {
    const file = join(folder(), 'box.db')
    prepare(file, false, migrations(first, 'CREATE TABLE extra (x)'))
    expect(existsSync(`${file}.before-1`)).toBe(false)
    prepare(file, true, migrations(first, 'CREATE TABLE extra (x)', 'DELETE FROM notes'))
    expect(look(file)).toMatchObject({ version: 3, notes: 0 })
    expect(look(`${file}.before-2`)).toEqual({ version: 2, notes: 1, extra: true, sound: 'ok' })
    expect(statSync(`${file}.before-2`).mode & 0o777).toBe(0o600)
    prepare(`${file}.before-2`, true, migrations(first, 'CREATE TABLE extra (x)'))
  })

  it('keep no copy of a new database that was cut off between two of them, and one of it before the next', () => {
    const file = join(folder(), 'box.db')
    expect(() => prepare(file, false, migrations(first, 'no SQL'))).toThrow(/stays at version 1/)
    prepare(file, false, migrations(first, 'CREATE TABLE extra (x)'))
    expect(readdirSync(dirname(file))).toEqual(['box.db'])
    prepare(file, true, migrations(first, 'CREATE TABLE extra (x)', 'DELETE FROM notes'))
    expect(look(`${file}.before-2`)).toMatchObject({ version: 2, notes: 1 })
  })

  it('are not begun where the copy has no room, and nothing is left of it', () => {
    const disk = smallDisk(8)
    if (disk === undefined) return
    const file = join(disk, 'box.db')
    prepare(file, false, migrations(first, 'CREATE TABLE extra (x)', 'INSERT INTO extra VALUES (randomblob(3000000))'))
    fillDisk(join(disk, 'ballast'), 1024 * 1024)
    const next = migrations(first, 'CREATE TABLE extra (x)', 'SELECT 1', 'DELETE FROM notes')
    expect(() => prepare(file, true, next)).toThrow(
      `${file} was not migrated: the copy ${file}.before-3 that is made first needs 2.9 MiB, and 992 KiB are free. Free space, and start again; nothing was changed.`,
    )
    expect(readdirSync(disk).toSorted()).toEqual(['ballast', 'box.db'])
    expect(look(file)).toMatchObject({ version: 3, notes: 1 })
  })

  it('keep the copy of the last upgrade only, and that for 30 days', () => {
    const file = join(folder(), 'box.db')
    const steps = [first, 'CREATE TABLE extra (x)', 'DELETE FROM notes']
    prepare(file, false, migrations(...steps.slice(0, 1)))
    prepare(file, true, migrations(...steps.slice(0, 2)))
    writeFileSync(`${file}.before-1.mine`, '')
    prepare(file, true, migrations(...steps))
    const copies = (): string[] => readdirSync(join(file, '..')).filter((name) => name.includes('before'))
    expect(copies()).toEqual(['box.db.before-1.mine', 'box.db.before-2'])
    const day = 86_400
    for (const [age, there] of [
      [29 * day, true],
      [31 * day, false],
    ] as const) {
      utimesSync(`${file}.before-2`, Date.now() / 1000 - age, Date.now() / 1000 - age)
      prepare(file, true, migrations(...steps))
      expect(copies()).toEqual(there ? ['box.db.before-1.mine', 'box.db.before-2'] : ['box.db.before-1.mine'])
    }
  })

  it('are never taken back: a program that is older says so, and names the copy it could use', () => {
    const file = join(folder(), 'box.db')
    const steps = [first, 'CREATE TABLE extra (x)', 'DELETE FROM notes']
    prepare(file, false, migrations(...steps.slice(0, 2)))
    prepare(file, true, migrations(...steps))
    const before = readFileSync(file)
    const older = migrations(...steps.slice(0, 2))
    expect(() => prepare(file, true, older)).toThrow(
      `written by a newer Pillarbox (version 3, this one knows 2). Run the newer program, or restore a backup, or move it away with its -wal and -shm and put ${file}.before-2`,
    )
    expect(() => prepare(file, true, migrations(first))).toThrow(/Run the newer program, or restore a backup\.$/)
    expect(readFileSync(file).equals(before)).toBe(true)
    renameSync(`${file}.before-2`, file)
    prepare(file, true, older)
    expect(look(file)).toMatchObject({ version: 2, notes: 1 })
  })

  it('that fail leave the version before, and name themselves', () => {
    const file = join(folder(), 'box.db')
    prepare(file, false, migrations(first))
    const broken = migrations(first, 'DELETE FROM notes; CREATE TABLE extra (x); INSERT INTO nowhere VALUES (1)')
    expect(() => prepare(file, true, broken)).toThrow(
      /box\.db stays at version 1: .*0002_step\.sql failed \(no such table: nowhere\)/,
    )
    expect(look(file)).toEqual({ version: 1, notes: 1, extra: false, sound: 'ok' })
  })

  it('that were cut off between two steps keep the copy from before the first', () => {
    const file = join(folder(), 'box.db')
    prepare(file, false, migrations(first))
    expect(() => prepare(file, true, migrations(first, 'DELETE FROM notes', 'broken'))).toThrow(/stays at version 2/)
    prepare(file, true, migrations(first, 'DELETE FROM notes', 'CREATE TABLE extra (x)'))
    expect(look(file)).toMatchObject({ version: 3, notes: 0 })
    expect(look(`${file}.before-1`)).toMatchObject({ version: 1, notes: 1 })
    prepare(file, true, migrations(first, 'DELETE FROM notes', 'CREATE TABLE extra (x)', 'DROP TABLE extra'))
    expect(look(`${file}.before-3`)).toMatchObject({ version: 3, extra: true })
    expect(existsSync(`${file}.before-1`)).toBe(false)
  })

  it('do not begin when the copy cannot be written', () => {
    const file = join(folder(), 'box.db')
    prepare(file, false, migrations(first))
    mkdirSync(`${file}.before-1`)
    writeFileSync(join(`${file}.before-1`, 'in the way'), '')
    expect(() => prepare(file, true, migrations(first, 'DELETE FROM notes'))).toThrow(/was not migrated: its copy .*before-1/)
    expect(look(file)).toMatchObject({ version: 1, notes: 1 })
  })

  it('find out a database that lost a table or an index, and leave it as it is', () => {
    const steps = migrations(first, 'CREATE TABLE extra (x); CREATE INDEX extra_by_x ON extra (x)')
    for (const [lost, told] of [
      ['DROP TABLE notes', 'the table notes is missing'],
      ['DROP INDEX extra_by_x', 'the index extra_by_x is missing'],
      ['DROP TABLE extra', 'the table extra is missing'],
    ] as const) {
      const file = join(folder(), 'box.db')
      prepare(file, false, steps)
      const database = new DatabaseSync(file)
      database.exec(lost)
      database.close()
      const before = readFileSync(file)
      expect(() => prepare(file, true, steps)).toThrow(`${file} is damaged: ${told}. Restore a backup`)
      expect(readFileSync(file).equals(before)).toBe(true)
    }
  })

  it('must be numbered without a gap', () => {
    const path = migrations(first)
    writeFileSync(join(path, '0003_later.sql'), '')
    expect(() => prepare(join(folder(), 'box.db'), false, path)).toThrow(/0003_later\.sql is not numbered in order/)
  })

  it('killed at any moment leave the old state or the new, and go on at the next start', async () => {
    const steps = migrations(first, long)
    let cutOff = 0
    for (let round = 0; round < 10; round++) {
      const directory = folder()
      const file = join(directory, 'box.db')
      prepare(file, false, migrations(first))
      const running = child('store/children/migrate.ts', [file, steps])
      await running.until(1)
      await sleep(round * 40)
      await running.kill()
      if (!running.lines().includes('done')) cutOff += 1
      const seen = look(file)
      expect(seen.sound).toBe('ok')
      expect([
        { version: 1, notes: 1, extra: false },
        { version: 2, notes: 150_001, extra: true },
      ]).toContainEqual({ version: seen.version, notes: seen.notes, extra: seen.extra })
      prepare(file, true, steps)
      expect(look(file)).toMatchObject({ version: 2, notes: 150_001 })
      expect(readdirSync(directory).filter((name) => name.endsWith('.part'))).toEqual([])
    }
    expect(cutOff).toBeGreaterThan(0)
  })
})
