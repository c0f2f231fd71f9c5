import { dirname } from 'node:path'
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { parsePostgresUrl } from '../../src/config/database/postgres-url.ts'
import type { Log } from '../../src/core/log.ts'
import type { Database } from '../../src/store/database.ts'
import { PostgresDatabase } from '../../src/store/postgres/database.ts'
import { statementOf } from '../../src/store/postgres/statements.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'

/** The URLs of the databases of boxes on PostgreSQL, by their data directory. */
const urls = new Map<string, string>()

/** Notes where the database of a box is: `openStore` opens it there. */
export function storeIsAt(dataDirectory: string, url: string): void {
  urls.set(dataDirectory, url)
}

/** True if the database of this file is on a server. */
export function isOnServer(file: string): boolean {
  return urls.has(dirname(file))
}

/** Opens the database of a stopped box as the box does. */
export function openDatabase(file: string, log: Log): Promise<Database> {
  const url = urls.get(dirname(file))
  return url === undefined ? SqliteDatabase.open(file, log) : PostgresDatabase.open(parsePostgresUrl(url), log)
}

/** What tests use of `DatabaseSync`. */
export interface Store extends Disposable {
  prepare(text: string): {
    all(...values: Value[]): Record<string, Any>[]
    get(...values: Value[]): Record<string, Any> | undefined
    run(...values: Value[]): { changes: number | bigint }
  }
  exec(text: string): void
  close(): void
}

type Value = string | number | null | Uint8Array
// a column of any type, as tests know
type Any = ReturnType<typeof JSON.parse>

/** Opens the database of a box beside it, for a look or a change by hand: the file, or its database on PostgreSQL. */
export function openStore(file: string, options?: DatabaseSyncOptions): Store {
  const url = urls.get(dirname(file))
  if (url !== undefined) return new PostgresStore(url)
  return options === undefined ? new DatabaseSync(file) : new DatabaseSync(file, options)
}

interface Answer {
  rows: Record<string, Any>[]
  changes: number
  failure?: string
}

let worker: Worker | undefined
let last = 0

/** A connection that is used without waiting, as one to a file: a thread waits in its place. */
class PostgresStore implements Store {
  readonly #url: string
  readonly #id = (last += 1)

  constructor(url: string) {
    this.#url = url
  }

  prepare(text: string): ReturnType<Store['prepare']> {
    const ask = (values: Value[]): Answer => {
      const statement = statementOf(forPostgres(text), values)
      return this.#ask(statement.text, statement.values)
    }
    return {
      all: (...values) => ask(values).rows,
      get: (...values) => ask(values).rows[0],
      run: (...values) => ({ changes: ask(values).changes }),
    }
  }

  exec(text: string): void {
    this.#ask(forPostgres(text))
  }

  close(): void {
    this.#ask(undefined)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #ask(text: string | undefined, values?: unknown[]): Answer {
    if (!worker) {
      worker = new Worker(new URL('./postgres-worker.ts', import.meta.url))
      worker.unref()
    }
    const done = new Int32Array(new SharedArrayBuffer(4))
    const { port1, port2 } = new MessageChannel()
    worker.postMessage({ id: this.#id, url: this.#url, text, values, done, port: port2 }, [port2])
    if (Atomics.wait(done, 0, 0, 60_000) === 'timed-out') throw new Error('The database did not answer.')
    const answer = receiveMessageOnPort(port1)!.message as Answer
    port1.close()
    if (answer.failure !== undefined) throw new Error(answer.failure)
    return answer
  }
}

/** Triggers, and the beginning of a transaction, are written otherwise there. */
function forPostgres(text: string): string {
  return text
    .replaceAll(/CREATE TRIGGER (\w+) (.+?)(?: WHEN (.+?))?\s+BEGIN (.+?); END/gs, (_, name, event, condition, body) => {
      const work = String(body).replaceAll(/SELECT RAISE\(ABORT, ('.+?')\)/g, 'RAISE EXCEPTION $1')
      const when = condition === undefined ? '' : `WHEN (${condition})`
      return `CREATE FUNCTION "${name}"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${work}; RETURN coalesce(NEW, OLD); END $$;
        CREATE TRIGGER "${name}" ${event} FOR EACH ROW ${when} EXECUTE FUNCTION "${name}"()`
    })
    .replaceAll(/\bDROP TRIGGER (\w+)/g, 'DROP FUNCTION "$1"() CASCADE')
    .replaceAll('BEGIN IMMEDIATE', 'BEGIN')
}
