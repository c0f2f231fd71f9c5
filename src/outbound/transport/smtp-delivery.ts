import type { Log } from '../../core/log.ts'
import type { Connections } from './connections.ts'
import type { MailExchangers, ServerConnection, MailHosts } from './mx.ts'
import { policyNames } from './policies.ts'
import { type SessionOptions, type OutgoingCopy, SmtpClientSession } from './session.ts'
import { noPolicy, tlsaPolicy, type TlsFailure, type TlsListener, type TlsPolicy } from './tls-result.ts'
import type { TlsMemory } from './tls-memory.ts'
import { later, never, policyUnknown, type Server, Undelivered } from './undelivered.ts'

/** The next hop of a message, with the options of its session. */
export interface NextHop {
  target: MailHosts
  options: SessionOptions
  /** The policy of the domain for TLS reports, and why it could not be fetched; without it no session is reported. */
  appliedPolicy?: AppliedPolicy
  /** True if the MTA-STS policy of the domain could not be determined. */
  policyUnknown?: true
}

interface AppliedPolicy {
  policy: TlsPolicy
  mode: 'enforce' | 'testing' | 'none'
  failure: TlsFailure | undefined
}

/** The server that accepted the message, and its reply. */
export interface Receipt extends Server {
  response: string
}

/** Called for each server before it is tried. */
export type ServerListener = (server: Pick<Server, 'hostname' | 'address'>) => void

interface SmtpDeliveryDeps {
  exchangers: MailExchangers
  connections: Connections
  memory: TlsMemory
  log: Log
  report: TlsListener
}

/** Delivers a message over an idle connection, or to the first server of the domain that accepts a session. */
export class SmtpDelivery {
  readonly #exchangers: MailExchangers
  readonly #connections: Connections
  readonly #memory: TlsMemory
  readonly #log: Log
  readonly #report: TlsListener

  constructor({ exchangers, connections, memory, log, report }: SmtpDeliveryDeps) {
    this.#exchangers = exchangers
    this.#connections = connections
    this.#memory = memory
    this.#log = log
    this.#report = report
  }

  /** `octets` is called once there is a session. Throws Undelivered. */
  async deliver(
    destination: NextHop,
    copy: Omit<OutgoingCopy, 'octets'>,
    octets: () => Promise<Buffer>,
    signal: AbortSignal,
    onServer: ServerListener = () => {},
  ): Promise<Receipt> {
    const key = keyOf(destination)
    return this.#connections.withSlot(key, signal, async () => {
      const session = (await this.#connections.take(key, signal)) ?? (await this.#open(destination, copy, signal, onServer))
      onServer(session)
      try {
        const response = await session.send({ ...copy, octets: await octets() }, signal)
        this.#connections.keep(key, session)
        const { hostname, address, tls, security } = session
        return { response, hostname, address, tls, security }
      } catch (error) {
        if (!(error instanceof Undelivered)) {
          session.close()
          throw error
        }
        const { smtp_code } = error.answer
        // after 421 the server closes; without a code the state of the session is unknown
        if (smtp_code === 421) this.#connections.drop(key)
        if (smtp_code === null || smtp_code === 421) session.close()
        else this.#connections.keep(key, session)
        throw error.at(session)
      }
    })
  }

  async #open(
    destination: NextHop,
    copy: Omit<OutgoingCopy, 'octets'>,
    signal: AbortSignal,
    onServer: ServerListener,
  ): Promise<SmtpClientSession> {
    const { target } = destination
    let failure: Undelivered | undefined
    // a temporary failure takes precedence over permanent ones
    const note = (said: Undelivered): void => {
      if (!failure || (failure.permanent && !said.permanent)) failure = said
    }
    try {
      for await (const opened of this.#exchangers.servers(target, signal, onServer)) {
        try {
          if (copy.require_tls && !isAuthenticated(target, opened)) {
            opened.socket.destroy()
            throw notAuthenticated(destination, opened.hostname)
          }
          return await this.#requireKnownTls(target, await this.#openSession(opened, destination, signal))
        } catch (error) {
          if (!(error instanceof Undelivered)) throw error
          const said = error.step === 'tls' && copy.require_tls ? never(error.message, '5.7.30') : error
          note(said.at({ hostname: opened.hostname, address: opened.address, tls: null, security: null }))
        }
      }
    } catch (error) {
      if (!(error instanceof Undelivered)) throw error
      if (error.step === 'policy')
        this.#reportSession(destination, { failure: { type: 'validation-failure', reason: 'mx-not-in-policy' } })
      note(error)
    }
    throw failure!
  }

  /** Throws when a server that had TLS before has none now: an attacker may be removing it (STARTTLS stripping). */
  async #requireKnownTls({ host, withoutDane }: MailHosts, session: SmtpClientSession): Promise<SmtpClientSession> {
    // the TLS of a relay is set by the operator
    if (host !== undefined || withoutDane) return session
    try {
      if (session.security?.verified) await this.#memory.remember(session.hostname)
      if (session.tls !== null || (await this.#memory.allowsClear(session.hostname))) return session
    } catch (error) {
      session.close()
      throw error
    }
    session.leave()
    throw later(
      `${session.hostname} had TLS with a valid certificate before and has none now; mail is deferred for a day`,
      '4.7.5',
      'tls',
    )
  }

  /**
   * With opportunistic TLS (no policy, no TLSA records) a server whose TLS fails is tried in the clear at once, as if it had offered none. Otherwise
   * a failed handshake ends the attempt at this server.
   */
  async #openSession(opened: ServerConnection, destination: NextHop, signal: AbortSignal): Promise<SmtpClientSession> {
    const { options, appliedPolicy } = destination
    const asked = options.level === 'opportunistic' && opened.requiresTls ? 'required' : options.level
    const level = opened.tlsa ? 'dane' : asked
    // read now, as a closed socket has no address
    const sending_ip = opened.socket.localAddress ?? null
    try {
      const session = await SmtpClientSession.open(opened, { ...options, level }, signal, this.#log)
      const mistaken = appliedPolicy?.mode === 'testing' && !policyNames({ mx: appliedPolicy.policy.mx_hosts }, opened.hostname)
      const flaw = mistaken ? { type: 'validation-failure' as const, reason: 'mx-not-in-policy' } : session.flaw
      // without a policy that requires a certificate, TLS is enough
      const counts = level !== 'dane' && (session.tls === null || appliedPolicy?.mode === 'testing')
      this.#reportSession(destination, { failure: counts ? flaw : null, opened, sending_ip })
      return session
    } catch (error) {
      if (!(error instanceof Undelivered) || error.step !== 'tls') throw error
      this.#reportSession(destination, {
        failure: error.tlsFailure ?? { type: 'validation-failure', reason: null },
        opened,
        sending_ip,
      })
      if (level !== 'opportunistic') throw error
      const again = { ...opened, socket: await opened.reconnect() }
      return SmtpClientSession.open(again, { ...options, level: 'clear' }, signal, this.#log)
    }
  }

  /** Reports a session, and before it that the policy could not be fetched. */
  #reportSession(
    { target, appliedPolicy }: NextHop,
    { failure, opened, sending_ip = null }: { failure: TlsFailure | null; opened?: ServerConnection; sending_ip?: string | null },
  ): void {
    if (!appliedPolicy) return
    const { domain } = target
    const ends = { sending_ip, receiving_ip: opened?.address ?? null, receiving_mx: opened?.hostname ?? null }
    if (appliedPolicy.failure) {
      const policy: TlsPolicy = appliedPolicy.policy.type === 'sts' ? appliedPolicy.policy : { ...noPolicy(domain), type: 'sts' }
      this.#report({ domain, policy, failure: appliedPolicy.failure, ...ends })
    }
    const policy = opened?.tlsa ? tlsaPolicy(opened.hostname, opened.tlsa) : appliedPolicy.policy
    this.#report({ domain, policy, failure, ...ends })
  }
}

/** RFC 8689 4.2.1: whether the server is authenticated by MTA-STS, by DNSSEC, or named by the operator. */
function isAuthenticated({ host, allows }: MailHosts, { tlsa }: ServerConnection): boolean {
  return host !== undefined || allows !== undefined || tlsa !== undefined
}

function notAuthenticated({ target, policyUnknown: isUnknown }: NextHop, hostname: string): Undelivered {
  if (isUnknown) return policyUnknown(target.domain)
  return never(`${hostname} is authenticated neither by a policy nor by the DNS (RFC 8689)`, '5.7.30')
}

/** The key of the connection pool: the servers and the session options. */
function keyOf({ target, options }: NextHop): string {
  const server = [target.host ?? target.domain, target.port]
  return [
    ...server,
    options.level,
    options.implicit,
    options.login?.user ?? '',
    target.allows !== undefined,
    target.withoutDane ?? false,
  ].join(' ')
}
