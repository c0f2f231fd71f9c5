import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../core/log.ts'
import { type SessionLog, replyText } from './session-log.ts'
import type { SubmissionAuth } from './delivery-target.ts'
import type { FailedLoginCounter } from './failed-logins.ts'
import { Refusal, replyError } from './replies.ts'
import type { SmtpSession } from './session.ts'

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
      this.#log.debug({ session, ip: smtpSession.address, identity: entry.who }, 'logged in')
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
