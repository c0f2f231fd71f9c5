/** A table or an index, and the table that it goes with. */
interface Part {
  type: 'table' | 'index'
  name: string
  table: string
}

/** What a migration begins a statement with, at the start of a line or after another one, that adds or removes a table or an index. */
const change =
  /(?:^|;)[ \t]*(?:CREATE (?<virtual>VIRTUAL )?TABLE (?<table>\w+)|CREATE (?:UNIQUE )?INDEX (?<index>\w+) ON (?<on>\w+)|DROP (?<dropped>TABLE|INDEX) (?:IF EXISTS )?(?<gone>\w+)|ALTER TABLE (?<old>\w+) RENAME TO (?<now>\w+))/gm

/** Tables in which FTS5 keeps what a contentless table of its own indexes ("FTS5 Data Structures" of SQLite's documentation). */
const ofSearch = ['', '_data', '_idx', '_docsize', '_config']

/**
 * The tables and indexes, as `table emails`, that a database has after these migrations, in the order in which they were made. Read from their text: to run them takes
 * a tenth of a second.
 */
export function expectedSchema(migrations: readonly string[]): string[] {
  let parts: Part[] = []
  for (const text of migrations) {
    for (const { groups } of text.matchAll(change)) {
      const { virtual, table, index, on, gone, dropped, old, now } = groups!
      if (table !== undefined) {
        const names = virtual === undefined ? [table] : ofSearch.map((suffix) => table + suffix)
        parts.push(...names.map((name): Part => ({ type: 'table', name, table: name })))
      } else if (index !== undefined) parts.push({ type: 'index', name: index, table: on! })
      else if (dropped === 'TABLE') parts = parts.filter((part) => part.table !== gone)
      else if (dropped === 'INDEX') parts = parts.filter(({ name }) => name !== gone)
      else parts = parts.map((part) => (part.table === old ? renamed(part, now!) : part))
    }
  }
  return parts.map(({ type, name }) => `${type} ${name}`)
}

function renamed({ type, name }: Part, table: string): Part {
  return { type, name: type === 'table' ? table : name, table }
}
