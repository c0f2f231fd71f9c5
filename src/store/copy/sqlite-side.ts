import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { tablesOfSeveral, type Value } from '../database.ts'
import {
  batchBytes,
  batchEmails,
  batchRows,
  type IndexedEmail,
  orderOf,
  progressTable,
  quoted,
  type Row,
  searchTable,
  type Sequences,
  sizeOf,
  type Source,
  type Table,
  type Target,
} from './side.ts'

const ofSeveral = tablesOfSeveral.map((name) => `'${name}'`).join(', ')

/** The tables of a database file that are copied: without those of the search index, and what several boxes have there; the copy has `state.json`. */
export function tablesOf(database: DatabaseSync): Table[] {
  const names = database
    .prepare(
      `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT IN (?, ${ofSeveral}) AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name`,
    )
    .all(progressTable)
  return names.map(({ name }) => {
    const columns = database.prepare('SELECT name, type, pk FROM pragma_table_info(?)').all(name as string) as {
      name: string
      type: Table['columns'][number]['type']
      pk: number
    }[]
    const keys = columns.filter(({ pk }) => pk > 0).toSorted((one, other) => one.pk - other.pk)
    const others = database
      .prepare('SELECT 1 FROM pragma_foreign_key_list(?) WHERE "table" <> ?')
      .get(name as string, name as string)
    return {
      name: String(name),
      columns: columns.map((column) => ({ name: column.name, type: column.type })),
      key: keys.map((column) => column.name),
      refers: others !== undefined,
    }
  })
}

/** Reads a database file. */
export class SqliteSource implements Source {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  async *rows({ name, columns, key }: Table, from: number): AsyncIterable<Row[]> {
    const query = `SELECT ${columns.map((column) => quoted(column.name)).join(', ')} FROM ${quoted(name)} ${orderOf(key)} LIMIT -1 OFFSET ?`
    for (const batch of this.#batches(query, from)) {
      yield batch
      // signals are heard between two batches
      await turn()
    }
  }

  async *indexed(from: number): AsyncIterable<number[]> {
    const query = `SELECT rowid FROM ${searchTable} ORDER BY rowid LIMIT -1 OFFSET ?`
    for (const batch of this.#batches(query, from, batchEmails)) {
      yield batch.map(([seq]) => seq as number)
      await turn()
    }
  }

  async sequences(tables: readonly Table[]): Promise<Sequences> {
    const rows = this.#database.prepare('SELECT name, seq FROM sqlite_sequence').all() as { name: string; seq: number }[]
    return new Map(rows.filter(({ name }) => tables.some((table) => table.name === name)).map(({ name, seq }) => [name, seq]))
  }

  *#batches(query: string, from: number, most = batchRows): Iterable<Value[][]> {
    const statement = this.#database.prepare(query)
    statement.setReturnArrays(true)
    let batch: Value[][] = []
    let size = 0
    for (const found of statement.iterate(from)) {
      const row = found as unknown as Value[]
      batch.push(row)
      size += sizeOf(row)
      if (batch.length < most && size < batchBytes) continue
      yield batch
      batch = []
      size = 0
    }
    if (batch.length > 0) yield batch
  }
}

/**
 * Writes a database file whose schema is that of this version. Until `finish`, it has no triggers, which would refuse rows of the audit log that are not
 * appended, and the table of an unfinished copy.
 */
export class SqliteTarget implements Target {
  readonly #database: DatabaseSync
  readonly #source: SqliteSource
  readonly #statements = new Map<string, StatementSync>()

  /** Begins a copy of this source in a new file. */
  static begin(database: DatabaseSync, source: string): SqliteTarget {
    transaction(database, () => {
      const triggers = database.prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`).all()
      for (const { name } of triggers) database.exec(`DROP TRIGGER ${quoted(String(name))}`)
      for (const { name } of tablesOf(database)) database.exec(`DELETE FROM ${quoted(name)}`)
      database.exec(`CREATE TABLE ${progressTable} (part TEXT PRIMARY KEY, done INTEGER NOT NULL, note TEXT)`)
      const note = database.prepare(`INSERT INTO ${progressTable} (part, done, note) VALUES (?, 0, ?)`)
      note.run('(source)', source)
      note.run('(triggers)', JSON.stringify(triggers.map(({ sql }) => sql)))
    })
    return new SqliteTarget(database)
  }

  /** Goes on with a copy that was begun. */
  constructor(database: DatabaseSync) {
    this.#database = database
    this.#source = new SqliteSource(database)
  }

  rows(table: Table, from: number): AsyncIterable<Row[]> {
    return this.#source.rows(table, from)
  }

  indexed(from: number): AsyncIterable<number[]> {
    return this.#source.indexed(from)
  }

  sequences(tables: readonly Table[]): Promise<Sequences> {
    return this.#source.sequences(tables)
  }

  done(name: string): number {
    return (this.#statement(`SELECT done FROM ${progressTable} WHERE part = ?`).get(name)?.['done'] as number | undefined) ?? 0
  }

  async insert({ name, columns }: Table, rows: readonly Row[], done: number): Promise<void> {
    const names = columns.map((column) => quoted(column.name)).join(', ')
    const insert = this.#statement(`INSERT INTO ${quoted(name)} (${names}) VALUES (${columns.map(() => '?').join(', ')})`)
    transaction(this.#database, () => {
      for (const row of rows) insert.run(...(row as SQLInputValue[]))
      this.#note(name, done)
    })
  }

  async insertWords(emails: readonly IndexedEmail[], done: number): Promise<void> {
    const insert = this.#statement(`INSERT INTO ${searchTable} (rowid, owner, sender, subject, body) VALUES (?, ?, ?, ?, ?)`)
    transaction(this.#database, () => {
      for (const { seq, words } of emails) insert.run(seq, words.owner, words.sender, words.subject, words.body)
      this.#note(searchTable, done)
    })
  }

  async setSequences(tables: readonly Table[], sequences: Sequences): Promise<void> {
    const numbered = new Set(
      this.#database
        .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'`)
        .all()
        .map(({ name }) => name),
    )
    transaction(this.#database, () => {
      this.#database.exec('DELETE FROM sqlite_sequence')
      const insert = this.#statement('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)')
      for (const { name } of tables.filter((table) => numbered.has(table.name))) {
        const last = sequences.get(name)
        if (last !== undefined) insert.run(name, last)
      }
    })
  }

  /** Makes it the database of a box. */
  finish(): void {
    const { note } = this.#database.prepare(`SELECT note FROM ${progressTable} WHERE part = '(triggers)'`).get() as {
      note: string
    }
    this.#statements.clear()
    transaction(this.#database, () => {
      placeEvents(this.#database)
      for (const trigger of JSON.parse(note) as string[]) this.#database.exec(trigger)
      this.#database.exec(`DROP TABLE ${progressTable}`)
    })
  }

  #note(part: string, done: number): void {
    this.#statement(
      `INSERT INTO ${progressTable} (part, done) VALUES (?, ?) ON CONFLICT (part) DO UPDATE SET done = excluded.done`,
    ).run(part, done)
  }

  #statement(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (!statement) this.#statements.set(text, (statement = this.#database.prepare(text)))
    return statement
  }
}

/** The source of an unfinished copy in a database file; undefined where there is none. */
export function unfinishedCopyIn(database: DatabaseSync): string | undefined {
  if (!database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(progressTable)) return undefined
  return String(database.prepare(`SELECT note FROM ${progressTable} WHERE part = '(source)'`).get()?.['note'])
}

function transaction(database: DatabaseSync, work: () => void): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    work()
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** Gives positions to events that had none yet: several boxes insert them with negative numbers. */
function placeEvents(database: DatabaseSync): void {
  const unplaced = database.prepare('SELECT seq FROM events WHERE seq < 0 ORDER BY seq DESC').all() as { seq: number }[]
  if (unplaced.length === 0) return
  const { last } = database.prepare('SELECT coalesce(max(seq), 0) AS last FROM events WHERE seq > 0').get() as { last: number }
  const moves = ['events', 'hidden_events'].map((table) => database.prepare(`UPDATE ${table} SET seq = ? WHERE seq = ?`))
  for (const [index, { seq }] of unplaced.entries()) for (const move of moves) move.run(last + 1 + index, seq)
}
