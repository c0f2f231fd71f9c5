import { type Clock, day, hour, iso } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { type Database, sql } from '../../store/database.ts'

interface Deps {
  database: Database
  clock: Clock
  log: Log
}

interface Row {
  checked_at: string
  missed_at: string | null
}


/** How long a server is known for its TLS, and how long it may go without before it is believed; milliseconds. */
const known = 30 * day
const timeout = day

/**
 * Servers that were spoken to over TLS with a good certificate. One of them that suddenly has none is more likely hidden behind somebody
 * who strips it: for a day its mail waits, then it is believed, and the log says so. Who wants more than that publishes a policy.
 */
export class TlsMemory {
  readonly #deps: Deps
  /** When a good certificate was last written down, so that it is not for each connection; in milliseconds. */
  readonly #noted = new Map<string, number>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** A certificate of this server was checked and good. */
  async remember(hostname: string): Promise<void> {
    const { database, clock } = this.#deps
    const now = clock.now()
    if (now - (this.#noted.get(hostname) ?? -Infinity) < hour) return
    await database.transaction(async (tx) => {
      await tx.run(
        sql`INSERT INTO tls_servers (hostname, checked_at) VALUES (${hostname}, ${iso(now)}) ON CONFLICT (hostname) DO UPDATE
          SET checked_at = excluded.checked_at, missed_at = NULL`,
      )
      await tx.run(sql`DELETE FROM tls_servers WHERE checked_at < ${iso(now - known)}`)
    })
    if (this.#noted.size >= 10_000) this.#noted.clear()
    this.#noted.set(hostname, now)
  }

  /** Whether mail may go to this server in the clear. */
  async allowsClear(hostname: string): Promise<boolean> {
    const { database, clock, log } = this.#deps
    const now = clock.now()
    const row = await database.get<Row>(
      sql`SELECT checked_at, missed_at FROM tls_servers WHERE hostname = ${hostname} AND checked_at >= ${iso(now - known)}`,
    )
    if (!row) return true
    this.#noted.delete(hostname)
    if (row.missed_at === null) {
      await database.transaction((tx) =>
        tx.run(sql`UPDATE tls_servers SET missed_at = ${iso(now)} WHERE hostname = ${hostname} AND missed_at IS NULL`),
      )
    } else if (now - Date.parse(row.missed_at) >= timeout) {
      await database.transaction((tx) => tx.run(sql`DELETE FROM tls_servers WHERE hostname = ${hostname}`))
      log.warn(
        { hostname, checked_at: row.checked_at },
        'A mail server has had no TLS for a day, and gets mail in the clear again',
      )
      return true
    }
    return false
  }
}
