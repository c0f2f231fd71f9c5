import { constants, DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { Statements } from '../../src/store/sqlite/statements.ts'

/** A database of three numbers, and how often SQLite has looked at a statement since: it asks once for each table and column when it prepares one. */
function counted(): { database: DatabaseSync; count: () => number } {
  const database = new DatabaseSync(':memory:')
  onTestFinished(() => database.close())
  database.exec('CREATE TABLE numbers (number INTEGER); INSERT INTO numbers VALUES (1), (2), (3)')
  let asked = 0
  database.setAuthorizer(() => {
    asked += 1
    return constants.SQLITE_OK
  })
  return { database, count: () => asked }
}

test('a statement is prepared once, whatever its limit is', () => {
  const { database, count } = counted()
  const statements = new Statements(database)
  const text = 'SELECT number FROM numbers ORDER BY number LIMIT ?'
  expect(statements.prepare(text).all([3])).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }])
  const once = count()
  expect(once).toBeGreaterThan(0)
  for (const limit of [1, 2, 3, 2, 1]) expect(statements.prepare(text).all([limit])).toHaveLength(limit)
  expect(count()).toBe(once)
})

test('SQLite itself prepares it again for each limit', () => {
  const { database, count } = counted()
  const statement = database.prepare('SELECT number FROM numbers ORDER BY number LIMIT ?')
  statement.all(3)
  const once = count()
  for (const limit of [1, 2]) statement.all(limit)
  expect(count()).toBeGreaterThan(once)
})
