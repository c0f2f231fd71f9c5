import { AsyncLocalStorage } from 'node:async_hooks'
import { DatabaseSync } from 'node:sqlite'
import type { Database, Sql, Transaction, Value } from '../../src/store/database.ts'
import { onlyCaches, OnlyRun } from '../../src/store/sqlite/only-run.ts'

const schema = `CREATE TABLE IF NOT EXISTS idempotency_keys (
  holder TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  run_id TEXT NOT NULL,
  status INTEGER NOT NULL,
  location TEXT,
  body TEXT,
  sealed INTEGER NOT NULL DEFAULT 0,
  memo TEXT,
  identity_id TEXT,
  resource_id TEXT,
  octets INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  PRIMARY KEY (holder, method, path, idempotency_key)
);
CREATE INDEX IF NOT EXISTS idempotency_keys_created_at ON idempotency_keys (created_at);`

/** Enough of a database for these tests: one SQLite connection, one transaction after the other. */
export function openDatabase(file = ':memory:'): Database {
  const sqlite = new DatabaseSync(file)
  sqlite.exec(schema)
  const reader = {
    engine: 'sqlite' as const,
    all: async <Row>(query: Sql) => sqlite.prepare(query.sql).all(...(query.values as Exclude<Value, bigint>[])) as Row[],
    get: async <Row>(query: Sql) =>
      sqlite.prepare(query.sql).get(...(query.values as Exclude<Value, bigint>[])) as Row | undefined,
  }
  const marks = new AsyncLocalStorage<(tx: Transaction) => Promise<unknown>>()
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...reader,
    run: new OnlyRun(),
    several: false,
    placesEvents: false,
    caches: onlyCaches,
    poll: async () => ({ events: [], unplaced: false }),
    placeEvents: async () => undefined,
    size: async () => 0,
    transaction: <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
      const mark = marks.getStore()
      const next = last.then(async () => {
        sqlite.exec('BEGIN IMMEDIATE')
        try {
          const tx: Transaction = {
            ...reader,
            run: async (query) => ({
              changes: Number(sqlite.prepare(query.sql).run(...(query.values as Exclude<Value, bigint>[])).changes),
            }),
            writes: 0,
            afterCommit: () => undefined,
            afterRollback: () => undefined,
          }
          await mark?.(tx)
          const result = await work(tx)
          sqlite.exec('COMMIT')
          return result
        } catch (error) {
          sqlite.exec('ROLLBACK')
          throw error
        }
      })
      last = next.catch(() => undefined)
      return next
    },
    onUnsure: () => undefined,
    reserveLog: async () => {},
    reclaim: async () => false,
    marking: (mark, work) => marks.run(mark, work),
    recording: (_record, work) => work(),
    slow: (query) => reader.all(query),
    inspect: async () => null,
    damage: async () => null,
    probe: async () => undefined,
    close: async () => sqlite.close(),
  }
}
