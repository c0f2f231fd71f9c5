import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import { neighbourhoodOf } from './guard.ts'

/** For how long a failed login counts, in milliseconds. */
const span = 900_000

/** Networks that are remembered; above it the oldest is forgotten. */
const mostNetworks = 100_000

/**
 * Failed logins of each IPv4 address or IPv6 /64. The same name and password again count once: a program with an old key that goes on
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
    const record = this.#from.get(neighbourhoodOf(address))
    return record !== undefined && record.since + span > this.#clock.now() && record.tried.size >= most
  }

  note(address: string, user: string, password: string): void {
    const network = neighbourhoodOf(address)
    const before = this.#from.get(network)
    const now = this.#clock.now()
    const record = before && before.since + span > now ? before : { since: now, tried: new Set<string>() }
    record.tried.add(createHmac('sha256', this.#key).update(`${user}\0${password}`).digest('base64url'))
    this.#from.delete(network)
    this.#from.set(network, record)
    if (this.#from.size > mostNetworks) this.#from.delete(this.#from.keys().next().value!)
  }
}
