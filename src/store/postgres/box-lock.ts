import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection } from './connections.ts'
import { describeTarget, type PostgresTarget } from './target.ts'

/** "PBOX": the lock of boxes; "PBWR": those of the writers of several boxes. */
const locks = { box: 0x50424f58, writer: 0x50425752 }

/** How a process has the database open: `alone`, or `shared` with other boxes. */
export type BoxLock = 'alone' | 'shared'

/** What the lock is wanted for, with what to do where another process holds it. */
const remedies = {
  alone: 'One box at a time can use a database, unless each has database.several (docs/several-boxes.md).',
  shared: 'It has not set database.several, or it works on the whole database; nothing was changed.',
  migration:
    'It may be of another version, which cannot go on after this one has migrated the database. Stop all boxes on it, then start them with the new version; after a crash wait half a minute. Nothing was changed.',
  exclusive: 'Stop all boxes on it, then run this command again. Nothing was changed.',
}

/** Another process holds the lock of the boxes. */
export class Held extends Error {
  constructor(target: PostgresTarget, purpose: keyof typeof remedies = 'alone') {
    super(`Another Pillarbox has ${describeTarget(target)} open. ${remedies[purpose]}`)
  }
}

/** Takes the lock of the boxes, which lasts as long as the connection. A killed process may hold it a moment longer. */
export function locked(connection: Connection, lock: BoxLock): Promise<boolean> {
  return tried(connection, `pg_try_advisory_lock${lock === 'shared' ? '_shared' : ''}(${locks.box}, hashtext(current_schema()))`)
}

/** Takes the lock of one writer of several boxes: when its next connection has it, the former one has ended. */
export function writerLocked(connection: Connection, writer: string): Promise<boolean> {
  return tried(connection, `pg_try_advisory_lock(${locks.writer}, hashtext($1))`, [writer])
}

async function tried(connection: Connection, lock: string, values: string[] = []): Promise<boolean> {
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    if (attempt > 1) await sleep(200)
    const { rows } = await connection.query(`SELECT ${lock} AS held`, values)
    if ((rows[0] as { held: number }).held === 1) return true
  }
  return false
}
