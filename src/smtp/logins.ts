import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../core/clock.ts'
import { lruMap } from '../core/memory.ts'
import type { Log } from '../core/log.ts'
import { type SessionLog, replyText } from './session-log.ts'
import type { SubmissionAuth } from './delivery-target.ts'
import { Refusal, replyError } from './replies.ts'
import type { SmtpSession } from './session.ts'
import { createHmac, randomBytes } from 'node:crypto'
import { networksOf, networkShares } from '../net/networks.ts'

export interface LoginLimits {
  /** Failed logins from one network within fifteen minutes. */
  max_failed_logins: number
  /** Delay of the reply to a failed login, in milliseconds, whatever the cause. */
  failed_login_delay: number
}

/** An AUTH command as parsed by smtp-server. PLAIN has both identities of RFC 4616. */
export interface SmtpCredentials {
  username?: string | undefined
  password?: string | null | undefined
  authcid?: string | undefined
  authzid?: string | undefined
}

/** Failed logins allowed in one session. */
const perSession = 3

/** Checks logins by name and password, and slows down guessing. */
export class LoginAttempts {
  readonly submissionAuth: SubmissionAuth
  readonly stats = { logins: 0, failed_logins: 0, blocked_logins: 0 }
  readonly #limits: () => LoginLimits
  readonly #log: Log
  readonly #sessionLog: SessionLog
  readonly #failed: FailedLogins

  constructor(submissionAuth: SubmissionAuth, limits: () => LoginLimits, clock: Clock, log: Log, sessionLog: SessionLog) {
    this.submissionAuth = submissionAuth
    this.#limits = limits
    this.#log = log
    this.#sessionLog = sessionLog
    this.#failed = new FailedLogins(clock)
  }

  /** Sets the delivery target of the session and returns the identity; throws the Refusal for AUTH otherwise. */
  async authenticate(smtpSession: SmtpSession, session: string, credentials: SmtpCredentials): Promise<string> {
    const { max_failed_logins, failed_login_delay } = this.#limits()
    const { username = '', password, authcid, authzid } = credentials
    const client = { session, ip: smtpSession.address, helo: smtpSession.helo, tls: smtpSession.tls }
    if (smtpSession.failedLogins >= perSession) throw new Refusal(421, '4.7.0', 'Too many failed logins')
    if (this.#failed.tooMany(smtpSession.address, max_failed_logins)) {
      this.stats.blocked_logins++
      const blocked = new Refusal(454, '4.7.0', 'Too many failed logins from your network, try again later')
      smtpSession.logNextRefusal(replyText(replyError(blocked)), (reply) => this.#sessionLog.blocked(client, reply))
      throw blocked
    }
    const delay = sleep(failed_login_delay, undefined, { ref: false })
    const entry = await this.submissionAuth.authenticate(username, password ?? '', smtpSession.address)
    // acting on behalf of another identity is not supported (RFC 4616 2)
    const isProxy = authcid && authzid && authcid.toLowerCase() !== authzid.toLowerCase()
    if (entry.deliveryTarget && !isProxy) {
      this.stats.logins++
      smtpSession.deliveryTarget = entry.deliveryTarget
      this.#log.debug({ session, ip: smtpSession.address, identity: entry.who }, 'Logged in')
      return entry.who
    }
    smtpSession.failedLogins++
    this.stats.failed_logins++
    this.#failed.note(smtpSession.address, username, password ?? '')
    // an unknown name may be a misplaced password, so it is not logged
    const reason = { identity: entry.who, why: entry.deliveryTarget ? 'on behalf of another' : entry.why }
    const wrong = new Refusal(535, '5.7.8', 'User name or password is wrong')
    await delay
    smtpSession.logNextRefusal(replyText(replyError(wrong)), (reply) => this.#sessionLog.login(client, reason, reply))
    throw wrong
  }
}

/** How long a failed login counts, in milliseconds. */
const window = 900_000

/** Networks that are tracked. */
const maxNetworks = 100_000

/**
 * Failed logins by IPv4 address or IPv6 /64, /56 and /48, so that owning many networks allows no more guesses. A repeated name and password
 * counts once: a program that retries with an outdated key is not locked out, while guessing means a new combination each time.
 */
export class FailedLogins {
  readonly #clock: Clock
  readonly #key = randomBytes(32)
  readonly #from = lruMap<{ since: number; tried: Set<string> }>(maxNetworks)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** True if logins from this address are blocked after too many recent failures. */
  tooMany(address: string, max: number): boolean {
    const now = this.#clock.now()
    return networksOf(address).some((network, index) => {
      const record = this.#from.get(network)
      return record !== undefined && record.since + window > now && record.tried.size >= max * networkShares[index]!
    })
  }

  note(address: string, user: string, password: string): void {
    const now = this.#clock.now()
    const tried = createHmac('sha256', this.#key).update(`${user}\0${password}`).digest('base64url')
    for (const network of networksOf(address)) {
      const before = this.#from.get(network)
      const record = before && before.since + window > now ? before : { since: now, tried: new Set<string>() }
      record.tried.add(tried)
      this.#from.set(network, record)
    }
  }
}
