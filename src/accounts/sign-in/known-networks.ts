import { type Clock, iso } from '../../core/clock.ts'
import { networkOf } from '../../net/networks.ts'
import { type Database, sql, type Transaction } from '../../store/database.ts'

/** Networks of one account that are remembered, the last ones. */
const most = 32

/** For how long, in milliseconds. */
const kept = 90 * 86_400_000

/** From where people signed in: IPv4 addresses and IPv6 /64s. Guesses of strangers elsewhere do not hold up who comes from there. */
export class KnownNetworks {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Asked with an empty account where there is none, so that the time tells nothing. */
  async has(accountId: string, address: string): Promise<boolean> {
    const row = await this.#database.get(
      sql`SELECT 1 FROM sign_in_networks WHERE account_id = ${accountId} AND network = ${networkOf(address)}
        AND last_used_at > ${iso(this.#clock.now() - kept)}`,
    )
    return row !== undefined
  }

  /** Somebody signed in from here. */
  async note(tx: Transaction, accountId: string, address: string): Promise<void> {
    const now = iso(this.#clock.now())
    await tx.run(
      sql`INSERT INTO sign_in_networks (account_id, network, last_used_at) VALUES (${accountId}, ${networkOf(address)}, ${now})
        ON CONFLICT DO UPDATE SET last_used_at = ${now}`,
    )
    await tx.run(
      sql`DELETE FROM sign_in_networks WHERE account_id = ${accountId} AND network NOT IN
        (SELECT network FROM sign_in_networks WHERE account_id = ${accountId} ORDER BY last_used_at DESC LIMIT ${most})`,
    )
  }
}
