import { type Clock, day, iso } from '../../core/clock.ts'
import { networkOf } from '../../net/networks.ts'
import { type Database, sql, type Transaction } from '../../store/database.ts'

/** The most networks of one person that are stored; the latest are kept. */
const maxNetworks = 32

/** How long a network is stored, in milliseconds. */
const lifetime = 90 * day

/** The networks from which people signed in: IPv4 addresses and IPv6 /64s. Guesses from other networks do not delay sign-ins from these. */
export class KnownNetworks {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Called with an empty id where there is no such person, so that the response time does not reveal it. */
  async has(personId: string, address: string): Promise<boolean> {
    const row = await this.#database.get(
      sql`SELECT 1 FROM sign_in_networks WHERE person_id = ${personId} AND network = ${networkOf(address)}
        AND last_used_at > ${iso(this.#clock.now() - lifetime)}`,
    )
    return row !== undefined
  }

  /** Records a sign-in from this address. */
  async note(tx: Transaction, personId: string, address: string): Promise<void> {
    const now = iso(this.#clock.now())
    await tx.run(
      sql`INSERT INTO sign_in_networks (person_id, network, last_used_at) VALUES (${personId}, ${networkOf(address)}, ${now})
        ON CONFLICT (person_id, network) DO UPDATE SET last_used_at = excluded.last_used_at`,
    )
    await tx.run(
      sql`DELETE FROM sign_in_networks WHERE person_id = ${personId} AND network NOT IN
        (SELECT network FROM sign_in_networks WHERE person_id = ${personId} ORDER BY last_used_at DESC LIMIT ${maxNetworks})`,
    )
  }
}
