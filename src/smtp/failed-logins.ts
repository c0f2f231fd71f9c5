import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import { lruMap } from '../core/memory.ts'
import { networksOf, networkShares } from '../net/networks.ts'
import { type Database, join, sql, type Sql } from '../store/database.ts'

/** How long a failed login counts, in milliseconds. */
const window = 900_000

/** How far the clock of another box may be ahead, in milliseconds. */
const maxSkew = 60_000

/** Networks that are tracked. */
const maxNetworks = 100_000

/**
 * Counts failed logins by IPv4 address or IPv6 /64, /56 and /48, so that owning many networks allows no more guesses. A repeated name and password
 * counts once: a program that retries with an outdated key is not locked out, while guessing means a new combination each time.
 */
export interface FailedLoginCounter {
  /** True if logins from this address are blocked after too many recent failures. */
  tooMany(address: string, max: number): boolean | Promise<boolean>
  note(address: string, user: string, password: string): void | Promise<void>
}

/** Counts the failed logins of one box alone, in memory. */
export class FailedLogins implements FailedLoginCounter {
  readonly #clock: Clock
  readonly #key = randomBytes(32)
  readonly #from = lruMap<{ since: number; tried: Set<string> }>(maxNetworks)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  tooMany(address: string, max: number): boolean {
    const now = this.#clock.now()
    return networksOf(address).some((network, index) => {
      const record = this.#from.get(network)
      return record !== undefined && isRecent(record.since, now) && record.tried.size >= max * networkShares[index]!
    })
  }

  note(address: string, user: string, password: string): void {
    const now = this.#clock.now()
    const tried = digest(this.#key, user, password)
    for (const network of networksOf(address)) {
      const before = this.#from.get(network)
      const record = before && isRecent(before.since, now) ? before : { since: now, tried: new Set<string>() }
      record.tried.add(tried)
      this.#from.set(network, record)
    }
  }
}

/** Counts the failed logins of several boxes together, in their database. */
export class SharedFailedLogins implements FailedLoginCounter {
  readonly #database: Database
  readonly #clock: Clock
  readonly #key: Buffer

  /** `key` is the same for all boxes. */
  constructor({ database, clock, key }: { database: Database; clock: Clock; key: Buffer }) {
    this.#database = database
    this.#clock = clock
    this.#key = key
  }

  async tooMany(address: string, max: number): Promise<boolean> {
    const networks = networksOf(address)
    const rows = await this.#database.all<{ network: string; tried: number }>(
      sql`SELECT network, count(*) AS tried FROM failed_logins WHERE network IN (${join(networks)}) AND ${this.#isRecent()}
        GROUP BY network`,
    )
    return rows.some(({ network, tried }) => tried >= max * networkShares[networks.indexOf(network)]!)
  }

  async note(address: string, user: string, password: string): Promise<void> {
    const tried = digest(this.#key, user, password)
    await this.#database.transaction(async (tx) => {
      for (const network of networksOf(address))
        await tx.run(
          sql`INSERT INTO failed_logins (network, tried, failed_at) VALUES (${network}, ${tried}, ${this.#clock.now()})
            ON CONFLICT (network, tried) DO UPDATE SET failed_at = excluded.failed_at WHERE NOT (${this.#isRecent()})`,
        )
    })
  }

  /** Removes those that count no more. */
  async sweep(): Promise<void> {
    const now = this.#clock.now()
    const old = sql`failed_at <= ${now - window} OR failed_at > ${now + window}`
    await this.#database.transaction((tx) => tx.run(sql`DELETE FROM failed_logins WHERE ${old}`))
  }

  /** The condition of logins that count. */
  #isRecent(): Sql {
    const now = this.#clock.now()
    return sql`failed_logins.failed_at BETWEEN ${now - window + 1} AND ${now + maxSkew}`
  }
}

/** True for a time that counts; one after now is of a clock that was ahead. */
function isRecent(since: number, now: number): boolean {
  return since <= now && since + window > now
}

function digest(key: Buffer, user: string, password: string): string {
  return createHmac('sha256', key).update(`${user}\0${password}`).digest('base64url')
}
