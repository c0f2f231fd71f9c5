import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { FailedLogins } from './failed-logins.ts'
import { spoken } from './journal.ts'
import type { Journal } from './journal.ts'
import type { Gate } from './mailroom.ts'
import { Refusal } from './refusal.ts'
import { replyError } from './replies.ts'
import type { Visit } from './visit.ts'

export interface LoginLimits {
  /** From one network within fifteen minutes. */
  max_failed_logins: number
  /** How long an answer to a failed login takes, in milliseconds: the same, whatever was wrong. */
  failed_login_delay: number
}

/** What smtp-server makes of an AUTH command; PLAIN has both identities of RFC 4616. */
export interface Credentials {
  username?: string | undefined
  password?: string | null | undefined
  authcid?: string | undefined
  authzid?: string | undefined
}

/** Failed logins of one session. */
const perSession = 3

/** Lets in who has a name and password that fit, and makes guessing slow. */
export class Logins {
  readonly gate: Gate
  readonly stats = { logins: 0, failed_logins: 0, blocked_logins: 0 }
  readonly #limits: () => LoginLimits
  readonly #log: Log
  readonly #journal: Journal
  readonly #failed: FailedLogins

  constructor(gate: Gate, limits: () => LoginLimits, clock: Clock, log: Log, journal: Journal) {
    this.gate = gate
    this.#limits = limits
    this.#log = log
    this.#journal = journal
    this.#failed = new FailedLogins(clock)
  }

  /** Gives the visit its mailroom, and answers who it is; throws the Refusal that AUTH answers otherwise. */
  async enter(visit: Visit, session: string, credentials: Credentials): Promise<string> {
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
    const entry = await this.gate.enter(username, password ?? '', visit.address)
    // nobody acts for another here (RFC 4616 2)
    const twofold = authcid && authzid && authcid.toLowerCase() !== authzid.toLowerCase()
    if (entry.mailroom && !twofold) {
      this.stats.logins++
      visit.mailroom = entry.mailroom
      this.#log.debug({ session, ip: visit.address, identity: entry.who }, 'Logged in')
      return entry.who
    }
    visit.failedLogins++
    this.stats.failed_logins++
    this.#failed.note(visit.address, username, password ?? '')
    // a name that nobody has may be a password in the wrong place
    const told = { identity: entry.who, why: entry.mailroom ? 'on behalf of another' : entry.why }
    const wrong = new Refusal(535, '5.7.8', 'Name or password is wrong')
    await answered
    visit.explain(spoken(replyError(wrong)), (reply) => this.#journal.login(client, told, reply))
    throw wrong
  }
}
