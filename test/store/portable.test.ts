import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { inhabit } from '../contract/inhabited.ts'
import { postgres } from '../support/postgres.ts'
import { postgresSchema } from '../support/postgres-schema.ts'
import { walk } from './walk.ts'

/** The statements that are SQLite's alone. */
const sqliteOnly = {
  'the engine': [
    /^BEGIN IMMEDIATE$/,
    /^BEGIN$/,
    /^COMMIT$/,
    /^SAVEPOINT one$/,
    /^RELEASE one$/,
    /^ROLLBACK TO one$/,
    /^PRAGMA /,
    / sqlite_schema /,
  ],
  'search by words: src/mail/search/full-text.ts': [/^INSERT INTO emails_search /, / emails_search MATCH \? /],
  'the index of words: src/ops/retention/search-index.ts': [/ emails_search_data | total_changes\(\) /],
}

test('PostgreSQL takes every statement that a box prepares, but those of the engine and of the search by words', async () => {
  const server = await postgres()
  if (!server) return
  const world = await inhabit()
  onTestFinished(() => world.close())
  const { prepared, slow } = await walk(world)
  const database = new DatabaseSync(join(world.box.directory, 'data', 'pillarbox.db'), { readOnly: true })
  onTestFinished(() => database.close())
  expect(await server.execute(postgresSchema(database))).toEqual([])
  const statements = [...new Set([...prepared, ...slow])]
  expect(statements.length).toBeGreaterThan(400)
  const exceptions = Object.values(sqliteOnly).flat()
  const shared = statements.filter((text) => !exceptions.some((exception) => exception.test(text)))
  expect(await server.execute(shared.map((text, index) => `PREPARE s${index} AS ${numbered(text)}`))).toEqual([])
  expect(exceptions.filter((exception) => !statements.some((text) => exception.test(text)))).toEqual([])
})

/** With the parameters of PostgreSQL: its driver leaves their types to the server, as PREPARE does here. */
function numbered(text: string): string {
  let count = 0
  return text.replaceAll(/'(?:[^']|'')*'|\?/g, (part) => (part === '?' ? `$${(count += 1)}` : part))
}
