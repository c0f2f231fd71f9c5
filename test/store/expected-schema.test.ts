import { readdirSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { expectedSchema } from '../../src/store/expected-schema.ts'

const folder = new URL('../../src/store/migrations/', import.meta.url)

test('after each migration SQLite has the tables and indexes that are read from its text', () => {
  const database = new DatabaseSync(':memory:')
  const run: string[] = []
  for (const name of readdirSync(folder).toSorted()) {
    const text = readFileSync(new URL(name, folder), 'utf8')
    database.exec(text)
    run.push(text)
    const there = database
      .prepare(
        `SELECT type || ' ' || name AS part FROM sqlite_schema WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`,
      )
      .all()
      .map(({ part }) => part as string)
    expect([name, ...expectedSchema(run).toSorted()]).toEqual([name, ...there.toSorted()])
  }
  database.close()
  expect(run.length).toBeGreaterThan(50)
})
