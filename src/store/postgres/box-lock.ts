import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection } from './connections.ts'
import { describeTarget, type PostgresTarget } from './target.ts'

/** "PBOX": the lock of the box that writes; "PBWR": those of writers where several boxes do. */
const locks = { box: 0x50424f58, writer: 0x50425752 }

/** Another process holds the lock of the box. */
export class Held extends Error {
  constructor(target: PostgresTarget) {
    super(`Another Pillarbox has ${describeTarget(target)} open. One box at a time can use a database.`)
  }
}

/**
 * Takes the lock of the box, which lasts as long as the connection. A killed process may hold it a moment longer. The lock of a `writer` is its own: when
 * its next connection has it, the former one has ended.
 */
export async function locked(connection: Connection, writer?: string): Promise<boolean> {
  const [lock, name] = writer === undefined ? [locks.box, 'current_schema()'] : [locks.writer, '$1']
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    if (attempt > 1) await sleep(200)
    const { rows } = await connection.query(
      `SELECT pg_try_advisory_lock(${lock}, hashtext(${name})) AS held`,
      writer === undefined ? [] : [writer],
    )
    if ((rows[0] as { held: number }).held === 1) return true
  }
  return false
}
