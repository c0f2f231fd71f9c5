import { closeSync, copyFileSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { verifyAuditOf } from '../../src/audit/verify.ts'
import { folder } from '../support/folder.ts'
import type { Store } from '../support/open-store.ts'
import { logOf, tamper } from './rows.ts'

const directory = mkdtempSync(join(tmpdir(), 'pillarbox-test-'))
const whole = await logOf(6, directory)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function copy(change: (database: Store) => void): string {
  const file = join(folder(), 'box.db')
  copyFileSync(whole, file)
  tamper(file, change)
  return file
}

test('a log that nobody changed is valid', () => {
  expect(verifyAuditOf(whole)).toMatchObject({ valid: true, rows: 6, first_seq: 1, last_seq: 6, faults: [] })
  expect(verifyAuditOf(copy(() => undefined))).toEqual(verifyAuditOf(whole))
})

const columns = ['account_id', 'at', 'actor', 'client', 'address', 'action', 'target', 'identity_id', 'detail', 'hash']

test.each(columns)('one changed byte in the column %s is found, and its row is named', (column) => {
  const { value } = reading(whole, `SELECT CAST(${column} AS BLOB) AS value FROM audit WHERE seq = 3`) as { value: Uint8Array }
  for (let at = 0; at < value.length; at += 1) {
    // another letter, and what is no UTF-8
    for (const bits of [1, 0x80]) {
      const changed = Uint8Array.from(value, (byte, index) => (index === at ? byte ^ bits : byte))
      const file = copy((database) => {
        const type = column === 'hash' ? '?' : 'CAST(? AS TEXT)'
        database.prepare(`UPDATE audit SET ${column} = ${type} WHERE seq = 3`).run(changed)
      })
      expect(verifyAuditOf(file)).toMatchObject({
        valid: false,
        rows: 6,
        faults: [{ seq: 3, what: 'was changed: its hash does not match' }],
      })
    }
  }
})

test.each([
  ['a changed count', 'UPDATE audit SET count = count + 1 WHERE seq = 3', { seq: 3 }],
  ['a column without its value', 'UPDATE audit SET target = NULL WHERE seq = 3', { seq: 3 }],
  ['a moved row', 'UPDATE audit SET seq = 30 WHERE seq = 3', { seq: 3, what: 'is missing' }],
  ['a deleted row', 'DELETE FROM audit WHERE seq = 3', { seq: 3, what: 'is missing' }],
  ['deleted rows', 'DELETE FROM audit WHERE seq IN (3, 4)', { seq: 3, what: 'to 4 are missing' }],
  ['a deleted first row', 'DELETE FROM audit WHERE seq = 1', { seq: 1, what: 'is missing' }],
  ['a deleted last row', 'DELETE FROM audit WHERE seq = 6', { seq: 6, what: 'is missing' }],
  ['no rows', 'DELETE FROM audit', { seq: 1, what: 'to 6 are missing' }],
  [
    'an added row',
    `INSERT INTO audit SELECT 7, account_id, at, actor, client, address, action, target, identity_id, count, detail, hash FROM audit WHERE seq = 6`,
    { seq: 7, what: 'was changed: its hash does not match' },
  ],
  ['another head', `UPDATE audit_chain SET head_hash = zeroblob(32)`, { seq: 6, what: 'is not the row that must be the last' }],
  ['an earlier head', `UPDATE audit_chain SET head_seq = 5`, { seq: 6, what: 'follows the row that must be the last' }],
  ['another beginning', `UPDATE audit_chain SET anchor_hash = randomblob(32)`, { seq: 1 }],
  ['a later beginning', `UPDATE audit_chain SET anchor_seq = 2`, { seq: 3 }],
  ['no chain', 'DELETE FROM audit_chain', { seq: 0 }],
])('%s is found', (_, statement, fault) => {
  const { valid, faults } = verifyAuditOf(copy((database) => database.exec(statement)))
  expect([valid, faults]).toMatchObject([false, expect.arrayContaining([expect.objectContaining(fault)])])
})

test('the first row that was changed is named, and each after it', () => {
  const file = copy((database) => database.exec(`UPDATE audit SET actor = 'key_2' WHERE seq IN (2, 5)`))
  expect(verifyAuditOf(file).faults.map(({ seq }) => seq)).toEqual([2, 5])
})

test('a chain that was computed anew differs from what a backup has as its last row', () => {
  const { head } = verifyAuditOf(whole)
  const known = { seq: 6, hash: Buffer.from(head, 'hex') }
  expect(verifyAuditOf(whole, known).valid).toBe(true)
  expect(verifyAuditOf(whole, { ...known, hash: Buffer.alloc(32) })).toMatchObject({
    valid: false,
    faults: [{ seq: 6, what: 'is another one than in the backup' }],
  })
  expect(verifyAuditOf(whole, { ...known, seq: 7 })).toMatchObject({
    valid: false,
    faults: [{ seq: 7, what: 'was in the backup, and is missing' }],
  })
})

test('missing triggers are found', () => {
  const file = copy(() => undefined)
  {
    using database = new DatabaseSync(file)
    database.exec('DROP TRIGGER audit_unchanged')
  }
  expect(verifyAuditOf(file).faults).toEqual([{ seq: 0, what: 'is open to changes: the triggers audit_unchanged are missing' }])
})

test('no statement changes a row, deletes one, puts one in between, or moves the ends of the chain', () => {
  const file = join(folder(), 'box.db')
  copyFileSync(whole, file)
  using database = new DatabaseSync(file)
  const row = `account_id, at, actor, client, address, action, target, identity_id, count, detail, hash FROM audit WHERE seq = 6`
  for (const statement of [
    `UPDATE audit SET actor = 'key_2' WHERE seq = 3`,
    'UPDATE OR REPLACE audit SET seq = 4 WHERE seq = 3',
    'DELETE FROM audit WHERE seq = 6',
    'DELETE FROM audit WHERE seq = 1',
    `INSERT INTO audit SELECT 8, ${row}`,
    `INSERT OR REPLACE INTO audit SELECT 3, ${row}`,
    `INSERT OR REPLACE INTO audit SELECT NULL, ${row}`,
    'UPDATE audit_chain SET head_seq = 5, head_hash = (SELECT hash FROM audit WHERE seq = 5)',
    'UPDATE audit_chain SET head_seq = 7, head_hash = zeroblob(32)',
    'UPDATE audit_chain SET anchor_seq = 3',
    'UPDATE audit_chain SET anchor_seq = 9, anchor_hash = zeroblob(32)',
    'DELETE FROM audit_chain',
    'INSERT OR REPLACE INTO audit_chain VALUES (1, 0, zeroblob(32), 0, zeroblob(32))',
  ]) {
    expect(() => database.exec(statement)).toThrow(/audit|chain/)
  }
  expect(verifyAuditOf(file).valid).toBe(true)
})

test('any changed byte of the pages that hold the rows and the ends of the chain is found', () => {
  const octets = readFileSync(whole)
  const file = join(folder(), 'box.db')
  writeFileSync(file, octets)
  const handle = openSync(file, 'r+')
  onTestFinished(() => closeSync(handle))
  const unnoticed: string[] = []
  const content = contentOf(whole)
  let changed = 0
  for (const table of ['audit', 'audit_chain']) {
    const { rootpage } = reading(whole, `SELECT rootpage FROM sqlite_schema WHERE name = '${table}'`) as { rootpage: number }
    const page = (rootpage - 1) * 4096
    // the cells of the page are at its end (sqlite.org/fileformat.html, 1.6), all of them one after the other
    const cells = page + octets.readUInt16BE(page + 5)
    for (let at = cells; at < page + 4096; at += 1) {
      writeSync(handle, Uint8Array.of(octets[at]! ^ (1 << (at % 8))), 0, 1, at)
      changed += 1
      // the number of a row has a place in its record too, which nobody reads
      if (!isNoticed(file) && !isDeepStrictEqual(contentOf(file), content)) unnoticed.push(`${table} ${at - page}`)
      writeSync(handle, octets, at, 1, at)
    }
  }
  expect(changed).toBeGreaterThan(800)
  expect(unnoticed).toEqual([])
})

function isNoticed(file: string): boolean {
  try {
    return !verifyAuditOf(file).valid
  } catch {
    return true
  }
}

function contentOf(file: string): unknown {
  using database = new DatabaseSync(file, { readOnly: true })
  return ['audit', 'audit_chain'].map((table) => database.prepare(`SELECT * FROM ${table}`).all())
}

function reading(file: string, query: string): unknown {
  using database = new DatabaseSync(file, { readOnly: true })
  return database.prepare(query).get()
}
