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
import { type Database, join, sql } from '../store/database.ts'

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
  readonly #failed: FailedLoginCounter

  constructor(
    submissionAuth: SubmissionAuth,
    limits: () => LoginLimits,
    deps: { failed: FailedLoginCounter; log: Log; sessionLog: SessionLog },
  ) {
    this.submissionAuth = submissionAuth
    this.#limits = limits
    this.#log = deps.log
    this.#sessionLog = deps.sessionLog
    this.#failed = deps.failed
  }

  /** Sets the delivery target of the session and returns the identity; throws the Refusal for AUTH otherwise. */
  async authenticate(smtpSession: SmtpSession, session: string, credentials: SmtpCredentials): Promise<string> {
    const { max_failed_logins, failed_login_delay } = this.#limits()
    const { username = '', password, authcid, authzid } = credentials
    const client = { session, ip: smtpSession.address, helo: smtpSession.helo, tls: smtpSession.tls }
    if (smtpSession.failedLogins >= perSession) throw new Refusal(421, '4.7.0', 'Too many failed logins')
    if (await this.#failed.tooMany(smtpSession.address, max_failed_logins)) {
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
    await this.#failed.note(smtpSession.address, username, password ?? '')
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
      return record !== undefined && record.since + window > now && record.tried.size >= max * networkShares[index]!
    })
  }

  note(address: string, user: string, password: string): void {
    const now = this.#clock.now()
    const tried = digest(this.#key, user, password)
    for (const network of networksOf(address)) {
      const before = this.#from.get(network)
      const record = before && before.since + window > now ? before : { since: now, tried: new Set<string>() }
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
      sql`SELECT network, count(*) AS tried FROM failed_logins WHERE network IN (${join(networks)}) AND failed_at > ${this.#since()}
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
            ON CONFLICT (network, tried) DO UPDATE SET failed_at = excluded.failed_at WHERE failed_logins.failed_at <= ${this.#since()}`,
        )
    })
  }

  /** Removes those that count no more. */
  async sweep(): Promise<void> {
    await this.#database.transaction((tx) => tx.run(sql`DELETE FROM failed_logins WHERE failed_at <= ${this.#since()}`))
  }

  #since(): number {
    return this.#clock.now() - window
  }
}

function digest(key: Buffer, user: string, password: string): string {
  return createHmac('sha256', key).update(`${user}\0${password}`).digest('base64url')
}
