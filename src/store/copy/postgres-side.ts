import type { Value } from '../database.ts'
import type { Connection } from '../postgres/connections.ts'
import { parameter } from '../postgres/values.ts'
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
  type Source,
  type Table,
  type Target,
  type WordIndex,
} from './side.ts'

/** Reads a database of PostgreSQL as of one moment, in a transaction that was begun with `beginSnapshot`. */
export class PostgresSource implements Source {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async *rows({ name, columns, key }: Table, from: number): AsyncIterable<Row[]> {
    const rest = `FROM ${quoted(name)} ${orderOf(key)}`
    // as they are stored: large values are not read for it
    const sizes = columns
      .filter(({ type }) => type !== 'INTEGER')
      .map((column) => `coalesce(pg_column_size(${quoted(column.name)}), 0)`)
    await this.#declare('sizes', `SELECT ${['0', ...sizes].join(' + ')} ${rest}`, from)
    await this.#declare('copied', `SELECT ${columns.map((column) => quoted(column.name)).join(', ')} ${rest}`, from)
    for (;;) {
      const next = await this.#fetch('sizes', batchRows)
      if (next.length === 0) break
      for (const count of batchesOf(next.map(([size]) => size as number))) yield await this.#fetch('copied', count)
    }
    await this.#connection.query('CLOSE ALL')
  }

  async *indexed(from: number): AsyncIterable<number[]> {
    await this.#declare('copied', `SELECT rowid FROM ${searchTable} ORDER BY rowid`, from)
    for (;;) {
      const rows = await this.#fetch('copied', batchEmails)
      if (rows.length === 0) break
      yield rows.map(([seq]) => seq as number)
    }
    await this.#connection.query('CLOSE ALL')
  }

  async sequences(tables: readonly Table[]): Promise<Sequences> {
    const found = new Map<string, number>()
    for (const [name, { sequence }] of await identitiesOf(this.#connection, tables)) {
      const { rows } = await this.#connection.query(`SELECT last_value AS last, is_called AS called FROM ${sequence}`)
      const { last, called } = rows[0] as { last: number; called: number }
      if (called === 1) found.set(name, last)
    }
    return found
  }

  async #declare(cursor: string, query: string, from: number): Promise<void> {
    await this.#connection.query(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${query}`)
    if (from > 0) await this.#connection.query(`MOVE FORWARD ${from} FROM ${cursor}`)
  }

  async #fetch(cursor: string, count: number): Promise<Value[][]> {
    const { rows } = await this.#connection.query<Value[]>({ text: `FETCH FORWARD ${count} FROM ${cursor}`, rowMode: 'array' })
    return rows
  }
}

/** How many rows of these sizes are in each batch. */
function* batchesOf(sizes: readonly number[]): Iterable<number> {
  let [count, bytes] = [0, 0]
  for (const size of sizes) {
    if (count > 0 && bytes + size > batchBytes) {
      yield count
      count = bytes = 0
    }
    count += 1
    bytes += size
  }
  yield count
}

/** The size of the database, in bytes. */
export async function bytesOf(connection: Connection): Promise<number> {
  const { rows } = await connection.query('SELECT pg_database_size(current_database()) AS size')
  return (rows[0] as { size: number }).size
}

/** Begins a transaction that reads what is stored at this moment. */
export async function beginSnapshot(connection: Connection): Promise<void> {
  await connection.query('SET idle_in_transaction_session_timeout = 0')
  await connection.query('SET statement_timeout = 0')
  await connection.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  // the first statement determines the moment
  await connection.query('SELECT count(*) FROM box')
}

/** A value that the other engine cannot have in a column of this type. */
export class WrongValue extends Error {}

/**
 * Writes a database of PostgreSQL whose schema is that of this version. Until `finish`, the triggers of the audit log are disabled, which would refuse
 * rows that are not appended, and the database has the table of an unfinished copy.
 */
export class PostgresCopyTarget implements Target {
  readonly #connection: Connection
  readonly #source: PostgresSource
  readonly #words: Pick<WordIndex, 'vector'>
  readonly #done = new Map<string, number>()

  /** Begins a copy of this source, in place of all that is there. */
  static async begin(connection: Connection, tables: readonly Table[], source: string): Promise<void> {
    await transaction(connection, async () => {
      await connection.query(`DROP TABLE IF EXISTS ${progressTable}`)
      await connection.query(`CREATE TABLE ${progressTable} (part TEXT PRIMARY KEY, done BIGINT NOT NULL, note TEXT)`)
      await connection.query(`INSERT INTO ${progressTable} (part, done, note) VALUES ('(source)', 0, $1)`, [source])
      for (const name of guarded) await connection.query(`ALTER TABLE ${name} DISABLE TRIGGER USER`)
      await connection.query(`TRUNCATE ${[...tables.map(({ name }) => quoted(name)), searchTable].join(', ')} RESTART IDENTITY`)
    })
  }

  /** Goes on with a copy that was begun. */
  static async open(connection: Connection, words: Pick<WordIndex, 'vector'>): Promise<PostgresCopyTarget> {
    const target = new PostgresCopyTarget(connection, words)
    const { rows } = await connection.query(`SELECT part, done FROM ${progressTable}`)
    for (const { part, done } of rows as { part: string; done: number }[]) target.#done.set(part, done)
    return target
  }

  private constructor(connection: Connection, words: Pick<WordIndex, 'vector'>) {
    this.#connection = connection
    this.#source = new PostgresSource(connection)
    this.#words = words
  }

  async *rows(table: Table, from: number): AsyncIterable<Row[]> {
    await beginSnapshot(this.#connection)
    yield* this.#source.rows(table, from)
    await this.#connection.query('COMMIT')
  }

  async *indexed(from: number): AsyncIterable<number[]> {
    await beginSnapshot(this.#connection)
    yield* this.#source.indexed(from)
    await this.#connection.query('COMMIT')
  }

  sequences(tables: readonly Table[]): Promise<Sequences> {
    return this.#source.sequences(tables)
  }

  done(name: string): number {
    return this.#done.get(name) ?? 0
  }

  async insert(table: Table, rows: readonly Row[], done: number): Promise<void> {
    const { name, columns } = table
    const names = columns.map((column) => quoted(column.name)).join(', ')
    const arrays = columns.map(({ type }, index) => `$${index + 1}::${types[type]}[]`).join(', ')
    const values = columns.map((column, index) => rows.map((row) => checked(table, column, row[index]!)))
    await this.#write(name, done, `INSERT INTO ${quoted(name)} (${names}) SELECT * FROM unnest(${arrays})`, values)
  }

  async insertWords(emails: readonly IndexedEmail[], done: number): Promise<void> {
    const text = `INSERT INTO ${searchTable} (rowid, words) SELECT seq, words::tsvector FROM unnest($1::bigint[], $2::text[]) AS found (seq, words)`
    // vectors can be as large as bodies
    for (let from = 0; from < emails.length;) {
      const vectors: string[] = []
      for (let size = 0; size < batchBytes && from + vectors.length < emails.length; size += vectors.at(-1)!.length)
        vectors.push(this.#words.vector(emails[from + vectors.length]!.words))
      const seqs = emails.slice(from, from + vectors.length).map(({ seq }) => seq)
      from += vectors.length
      await this.#write(searchTable, done - emails.length + from, text, [seqs, vectors])
    }
  }

  async setSequences(tables: readonly Table[], sequences: Sequences): Promise<void> {
    for (const [name, { column, sequence }] of await identitiesOf(this.#connection, tables)) {
      const { rows } = await this.#connection.query(`SELECT max(${quoted(column)}) AS last FROM ${quoted(name)}`)
      const { last } = rows[0] as { last: number | null }
      const highest = Math.max(last ?? 0, sequences.get(name) ?? 0)
      if (highest > 0) await this.#connection.query('SELECT setval($1::regclass, $2::bigint)', [sequence, highest])
    }
  }

  /** Makes it the database of a box; of several boxes with the document that they share. */
  async finish(shared: string | undefined): Promise<void> {
    await transaction(this.#connection, async () => {
      await this.#connection.query('DELETE FROM operator_state')
      if (shared !== undefined) await this.#connection.query('INSERT INTO operator_state (id, document) VALUES (1, $1)', [shared])
      for (const name of guarded) await this.#connection.query(`ALTER TABLE ${name} ENABLE TRIGGER USER`)
      await this.#connection.query(`DROP TABLE ${progressTable}`)
    })
  }

  async #write(part: string, done: number, text: string, values: unknown[]): Promise<void> {
    await transaction(this.#connection, async () => {
      await this.#connection.query(text, values)
      await this.#connection.query(
        `INSERT INTO ${progressTable} (part, done) VALUES ($1, $2) ON CONFLICT (part) DO UPDATE SET done = excluded.done`,
        [part, done],
      )
    })
    this.#done.set(part, done)
  }
}

/** The tables with triggers. */
const guarded = ['audit', 'audit_chain']

const types = { INTEGER: 'bigint', TEXT: 'text', BLOB: 'bytea' } as const

/** The value as a parameter. SQLite stores any value in any column, PostgreSQL does not. */
function checked(table: Table, { name, type }: Table['columns'][number], value: Row[number]): unknown {
  const fits =
    value === null ||
    (type === 'INTEGER' && Number.isSafeInteger(value)) ||
    (type === 'TEXT' && typeof value === 'string') ||
    (type === 'BLOB' && value instanceof Uint8Array)
  if (!fits) throw new WrongValue(`A row of ${table.name} has a value in ${name} that PostgreSQL cannot store there (${type}).`)
  return parameter(value)
}

/** The columns that are numbered by a sequence, with its name, by their table. */
async function identitiesOf(
  connection: Connection,
  tables: readonly Table[],
): Promise<Map<string, { column: string; sequence: string }>> {
  const { rows } = await connection.query(
    `SELECT t.relname AS name, c.attname AS column, pg_get_serial_sequence(quote_ident(t.relname), c.attname) AS sequence
      FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid
      WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r' AND c.attidentity <> '' AND t.relname = ANY ($1::text[])`,
    [tables.map(({ name }) => name)],
  )
  const found = rows as { name: string; column: string; sequence: string }[]
  return new Map(found.map(({ name, column, sequence }) => [name, { column, sequence }]))
}

/** The source of an unfinished copy in a database; undefined where there is none. */
export async function unfinishedCopyOn(connection: Connection): Promise<string | undefined> {
  const { rows } = await connection.query(`SELECT to_regclass($1) IS NOT NULL AS there`, [progressTable])
  if ((rows[0] as { there: number }).there !== 1) return undefined
  const noted = await connection.query(`SELECT note FROM ${progressTable} WHERE part = '(source)'`)
  return String((noted.rows[0] as { note: string } | undefined)?.note)
}

async function transaction(connection: Connection, work: () => Promise<void>): Promise<void> {
  await connection.query('BEGIN')
  try {
    await work()
    await connection.query('COMMIT')
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => {})
    throw error
  }
}
