import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection } from './connections.ts'
import { describeTarget, type PostgresTarget } from './target.ts'

/** "PBOX": the lock of the box that writes. */
const lock = 0x50424f58

/** Another process holds the lock of the box. */
export class Held extends Error {
  constructor(target: PostgresTarget) {
    super(`Another Pillarbox has ${describeTarget(target)} open. One box at a time can use a database.`)
  }
}

/** Takes the lock of the box, which lasts as long as the connection. A killed process may hold it a moment longer. */
export async function locked(connection: Connection): Promise<boolean> {
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    if (attempt > 1) await sleep(200)
    const { rows } = await connection.query(`SELECT pg_try_advisory_lock(${lock}, hashtext(current_schema())) AS held`)
    if ((rows[0] as { held: number }).held === 1) return true
  }
  return false
}
