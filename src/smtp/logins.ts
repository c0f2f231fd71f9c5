import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { type SessionLog, spoken } from './session-log.ts'
import type { SubmissionAuth } from './delivery-target.ts'
import { Refusal, replyError } from './replies.ts'
import type { SmtpSession } from './session.ts'
import { createHmac, randomBytes } from 'node:crypto'
import { neighbourhoods, networkShares } from '../net/networks.ts'

export interface LoginLimits {
  /** From one network within fifteen minutes. */
  max_failed_logins: number
  /** How long an answer to a failed login takes, in milliseconds: the same, whatever was wrong. */
  failed_login_delay: number
}

/** What smtp-server makes of an AUTH command; PLAIN has both identities of RFC 4616. */
export interface SmtpCredentials {
  username?: string | undefined
  password?: string | null | undefined
  authcid?: string | undefined
  authzid?: string | undefined
}

/** Failed logins of one session. */
const perSession = 3

/** Lets in who has a name and password that fit, and makes guessing slow. */
export class LoginAttempts {
  readonly submissionAuth: SubmissionAuth
  readonly stats = { logins: 0, failed_logins: 0, blocked_logins: 0 }
  readonly #limits: () => LoginLimits
  readonly #log: Log
  readonly #journal: SessionLog
  readonly #failed: FailedLogins

  constructor(submissionAuth: SubmissionAuth, limits: () => LoginLimits, clock: Clock, log: Log, journal: SessionLog) {
    this.submissionAuth = submissionAuth
    this.#limits = limits
    this.#log = log
    this.#journal = journal
    this.#failed = new FailedLogins(clock)
  }

  /** Gives the visit its mailroom, and answers who it is; throws the Refusal that AUTH answers otherwise. */
  async enter(visit: SmtpSession, session: string, credentials: SmtpCredentials): Promise<string> {
    const { max_failed_logins, failed_login_delay } = this.#limits()
    const { username = '', password, authcid, authzid } = credentials
    const client = { session, ip: visit.address, helo: visit.helo, tls: visit.tls }
    if (visit.failedLogins >= perSession) throw new Refusal(421, '4.7.0', 'Too many failed logins')
    if (this.#failed.tooMany(visit.address, max_failed_logins)) {
      this.stats.blocked_logins++
      const blocked = new Refusal(454, '4.7.0', 'Too many failed logins from your network, try again later')
      visit.explain(spoken(replyError(blocked)), (reply) => this.#journal.blocked(client, reply))
      throw blocked
    }
    const answered = sleep(failed_login_delay, undefined, { ref: false })
    const entry = await this.submissionAuth.enter(username, password ?? '', visit.address)
    // nobody acts for another here (RFC 4616 2)
    const twofold = authcid && authzid && authcid.toLowerCase() !== authzid.toLowerCase()
    if (entry.deliveryTarget && !twofold) {
      this.stats.logins++
      visit.deliveryTarget = entry.deliveryTarget
      this.#log.debug({ session, ip: visit.address, identity: entry.who }, 'Logged in')
      return entry.who
    }
    visit.failedLogins++
    this.stats.failed_logins++
    this.#failed.note(visit.address, username, password ?? '')
    // a name that nobody has may be a password in the wrong place
    const told = { identity: entry.who, why: entry.deliveryTarget ? 'on behalf of another' : entry.why }
    const wrong = new Refusal(535, '5.7.8', 'Name or password is wrong')
    await answered
    visit.explain(spoken(replyError(wrong)), (reply) => this.#journal.login(client, told, reply))
    throw wrong
  }
}

/** For how long a failed login counts, in milliseconds. */
const span = 900_000

/** Networks that are remembered; above it the oldest is forgotten. */
const maxNetworks = 100_000

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
      if (this.#from.size > maxNetworks) this.#from.delete(this.#from.keys().next().value!)
    }
  }
}
