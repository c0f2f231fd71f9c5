import type { Basis } from '../../basis.ts'
import { day, hour, iso } from '../../core/clock.ts'
import { sql, type Transaction } from '../../store/database.ts'

type Deps = Pick<Basis, 'database' | 'clock' | 'log'>

interface Row {
  checked_at: string
  missed_at: string | null
}

/** How long the TLS of a server is remembered, and how long mail waits when it has none; milliseconds. */
const retention = 30 * day
const waitTime = day

/** Servers that are remembered; above that, the least recently seen are removed. */
const maxServers = 100_000

/** Servers recorded between two counts of their number, and the most rows that one transaction deletes. */
const trimEvery = 1000
const batch = 2000

/**
 * Remembers servers that had TLS with a valid certificate. When one of them offers none, STARTTLS may be stripped by an attacker: its mail waits
 * for a day, then is sent in the clear, which is logged. A domain that needs more publishes a policy.
 */
export class TlsMemory {
  readonly #deps: Deps
  #untrimmed = 0

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Records that the certificate of a server was valid. */
  async remember(hostname: string): Promise<void> {
    const { database, clock } = this.#deps
    const now = clock.now()
    const row = await database.get<Row>(sql`SELECT checked_at, missed_at FROM tls_servers WHERE hostname = ${hostname}`)
    // not every connection writes
    if (row?.missed_at === null && now - Date.parse(row.checked_at) < hour) return
    this.#untrimmed += 1
    const trims = this.#untrimmed >= trimEvery
    if (trims) this.#untrimmed = 0
    await database.transaction(async (tx) => {
      await tx.run(
        sql`INSERT INTO tls_servers (hostname, checked_at) VALUES (${hostname}, ${iso(now)}) ON CONFLICT (hostname) DO UPDATE
          SET checked_at = excluded.checked_at, missed_at = NULL`,
      )
      await this.#trim(tx, now, trims)
    })
  }

  /** True if mail may go to this server in the clear. */
  async allowsClear(hostname: string): Promise<boolean> {
    const { database, clock, log } = this.#deps
    const now = clock.now()
    const row = await database.get<Row>(
      sql`SELECT checked_at, missed_at FROM tls_servers WHERE hostname = ${hostname} AND checked_at >= ${iso(now - retention)}`,
    )
    if (!row) return true
    if (row.missed_at === null) {
      await database.transaction((tx) =>
        tx.run(sql`UPDATE tls_servers SET missed_at = ${iso(now)} WHERE hostname = ${hostname} AND missed_at IS NULL`),
      )
    } else if (now - Date.parse(row.missed_at) >= waitTime) {
      await database.transaction((tx) => tx.run(sql`DELETE FROM tls_servers WHERE hostname = ${hostname}`))
      log.warn(
        { hostname, checked_at: row.checked_at },
        'mail server without TLS for a day; mail to it is sent without TLS again',
      )
      return true
    }
    return false
  }

  /** Removes what is too old, and with `all` what is more than the maximum. */
  async #trim(tx: Transaction, now: number, all: boolean): Promise<void> {
    let before = iso(now - retention)
    if (all) {
      const last = await tx.get<{ checked_at: string }>(
        sql`SELECT checked_at FROM tls_servers ORDER BY checked_at DESC LIMIT 1 OFFSET ${maxServers - 1}`,
      )
      if (last && last.checked_at > before) before = last.checked_at
    }
    await tx.run(
      sql`DELETE FROM tls_servers WHERE hostname IN (SELECT hostname FROM tls_servers WHERE checked_at < ${before} ORDER BY checked_at LIMIT ${batch})`,
    )
  }
}
