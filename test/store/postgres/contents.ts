import { DatabaseSync } from 'node:sqlite'
import { tablesOf } from '../../../src/store/copy/sqlite-side.ts'

/** All rows of a database file by their table, in an order of their own, with the words of the search index and the last numbers given. */
export function contentsOf(file: string): Record<string, string[]> {
  using database = new DatabaseSync(file, { readOnly: true })
  database.exec(`CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, 'emails_search', 'instance')`)
  const rows = (from: string): string[] =>
    database
      .prepare(`SELECT * FROM ${from}`)
      .all()
      .map((row) =>
        JSON.stringify(row, (_name, value) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value)),
      )
      .toSorted()
  const found = Object.fromEntries(tablesOf(database).map(({ name }) => [name, rows(`"${name}"`)]))
  return { ...found, '(words)': rows('temp.words'), '(numbers)': rows('sqlite_sequence WHERE seq > 0') }
}
