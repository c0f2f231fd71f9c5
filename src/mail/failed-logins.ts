import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import { neighbourhoods, networkShares } from '../core/networks.ts'

/** For how long a failed login counts, in milliseconds. */
const span = 900_000

/** Networks that are remembered; above it the oldest is forgotten. */
const mostNetworks = 100_000

/**
 * Failed logins of each IPv4 address or IPv6 /64, and of each /56 and /48: who has many networks guesses no more for that. The same name and password again count once: a program with an old key that goes on
 * trying locks nobody out, and one that guesses has something new each time.
 */
export class FailedLogins {
  readonly #clock: Clock
  readonly #key = randomBytes(32)
  readonly #from = new Map<string, { since: number; tried: Set<string> }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether this one is not even tried: so many others failed lately. */
  tooMany(address: string, most: number): boolean {
    const now = this.#clock.now()
    return neighbourhoods(address).some((network, index) => {
      const record = this.#from.get(network)
      return record !== undefined && record.since + span > now && record.tried.size >= most * networkShares[index]!
    })
  }

  note(address: string, user: string, password: string): void {
    const now = this.#clock.now()
    const tried = createHmac('sha256', this.#key).update(`${user}\0${password}`).digest('base64url')
    for (const network of neighbourhoods(address)) {
      const before = this.#from.get(network)
      const record = before && before.since + span > now ? before : { since: now, tried: new Set<string>() }
      record.tried.add(tried)
      this.#from.delete(network)
      this.#from.set(network, record)
      if (this.#from.size > mostNetworks) this.#from.delete(this.#from.keys().next().value!)
    }
  }
}
