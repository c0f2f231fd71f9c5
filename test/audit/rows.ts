import { DatabaseSync } from 'node:sqlite'
import { AuditLog } from '../../src/audit/log.ts'
import type { AuditEntry } from '../../src/core/audit.ts'
import { type Clock, systemClock } from '../../src/core/clock.ts'
import { Cursors } from '../../src/store/page.ts'
import type { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { opened } from '../store/opened.ts'
import { folder } from '../support/folder.ts'
import { isOnServer, openStore, type Store } from '../support/open-store.ts'

/** An entry with every field. */
export function entry(fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    account_id: 'acct_1',
    actor: 'key_1',
    client: 'mcp',
    address: '192.0.2.7',
    action: 'email.read',
    target: 'email_1',
    identity_id: 'ident_1',
    detail: { fields: ['name'] },
    ...fields,
  }
}

export interface Opened {
  file: string
  database: SqliteDatabase
  log: AuditLog
}

/** An empty log in a database of its own, which the caller closes. */
export async function openLog(clock: Clock = systemClock, directory = folder()): Promise<Opened> {
  const { file, database } = await opened(directory)
  return { file, database, log: new AuditLog({ database, clock, cursors: new Cursors(Buffer.alloc(32)) }) }
}

/** A log of so many rows, closed: the path of its file. */
export async function logOf(count: number, directory: string): Promise<string> {
  const { file, database, log } = await openLog(systemClock, directory)
  for (let n = 1; n <= count; n += 1) await database.transaction((tx) => log.append(tx, entry({ target: `email_${n}` }), n))
  await database.close()
  return file
}

/** Changes a database as somebody would who has it, without what keeps rows from being changed. */
export function tamper(file: string, change: (database: Store) => void): void {
  if (isOnServer(file)) return tamperOnServer(file, change)
  using database = new DatabaseSync(file)
  const triggers = database.prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'audit%'`).all()
  for (const { name } of triggers) database.exec(`DROP TRIGGER ${String(name)}`)
  change(database)
  for (const { sql } of triggers) database.exec(String(sql))
}

function tamperOnServer(file: string, change: (database: Store) => void): void {
  using database = openStore(file)
  for (const table of ['audit', 'audit_chain']) database.exec(`ALTER TABLE ${table} DISABLE TRIGGER USER`)
  change(database)
  for (const table of ['audit', 'audit_chain']) database.exec(`ALTER TABLE ${table} ENABLE TRIGGER USER`)
}
