import type { Log } from '../../core/log.ts'
import type { Connections } from './connections.ts'
import type { MailExchangers, ServerConnection, MailHosts } from './mx.ts'
import { policyNames } from './policies.ts'
import { type SessionOptions, type OutgoingCopy, SmtpClientSession } from './session.ts'
import { noPolicy, tlsaPolicy, type TlsFailure, type TlsListener, type TlsPolicy } from './tls-result.ts'
import type { TlsMemory } from './tls-memory.ts'
import { later, never, type Server, Undelivered } from './undelivered.ts'

/** Where a message goes, and how that server is to be spoken to. */
export interface NextHop {
  target: MailHosts
  options: SessionOptions
  /** The policy of the domain as a report shows it, and why it could not be fetched anew; without it no session is reported. */
  appliedPolicy?: AppliedPolicy
}

export interface AppliedPolicy {
  policy: TlsPolicy
  mode: 'enforce' | 'testing' | 'none'
  failure: TlsFailure | undefined
}

/** Who took it, and with which words. */
export interface Receipt extends Server {
  response: string
}

/** Hears of each server that is tried. */
export type ServerListener = (server: Pick<Server, 'hostname' | 'address'>) => void

interface SmtpDeliveryDeps {
  exchangers: MailExchangers
  connections: Connections
  memory: TlsMemory
  log: Log
  report: TlsListener
}

/** Hands one message to one destination: over a connection that is there, or to the first server of the domain that will speak with us. */
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

  /** `octets` are read when there is somebody to send them to. Throws Undelivered. */
  async deliver(
    destination: NextHop,
    copy: Omit<OutgoingCopy, 'octets'>,
    octets: () => Promise<Buffer>,
    signal: AbortSignal,
    trying: ServerListener = () => {},
  ): Promise<Receipt> {
    const key = keyOf(destination)
    return this.#connections.withSlot(key, signal, async () => {
      const session = (await this.#connections.take(key, signal)) ?? (await this.#open(destination, copy, signal, trying))
      trying(session)
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
        // 421 says that it wants to be left alone; without a code nobody knows where the dialogue stands
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
    trying: ServerListener,
  ): Promise<SmtpClientSession> {
    const { target } = destination
    let failure: Undelivered | undefined
    // one server that may take it later outweighs those that never will
    const note = (said: Undelivered): void => {
      if (!failure || (failure.permanent && !said.permanent)) failure = said
    }
    try {
      for await (const opened of this.#exchangers.servers(target, signal, trying)) {
        try {
          if (copy.require_tls && !isVouchedFor(target, opened)) {
            opened.socket.destroy()
            throw never(`neither a policy nor the DNS vouches for ${opened.hostname} (RFC 8689)`, '5.7.30')
          }
          return await this.#remembered(target, await this.#greet(opened, destination, signal))
        } catch (error) {
          if (!(error instanceof Undelivered)) throw error
          const said = error.step === 'tls' && copy.require_tls ? never(error.message, '5.7.30') : error
          note(said.at({ hostname: opened.hostname, address: opened.address, tls: null, security: null }))
        }
      }
    } catch (error) {
      if (!(error instanceof Undelivered)) throw error
      if (error.step === 'policy')
        this.#tell(destination, { failure: { type: 'validation-failure', reason: 'mx-not-in-policy' } })
      note(error)
    }
    throw failure!
  }

  /** Throws when a server of a domain, known for its TLS, has none now: somebody may be taking it away to read what is sent. */
  async #remembered({ host, withoutDane }: MailHosts, session: SmtpClientSession): Promise<SmtpClientSession> {
    // of a relay the settings say what it must have
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
      `${session.hostname} had TLS with a good certificate before and has none now; mail waits for a day`,
      '4.7.5',
      'tls',
    )
  }

  /**
   * Where TLS is only taken as it comes (no policy, no TLSA records), a server whose TLS is broken is spoken to in the clear at once: it
   * would have been so had it offered none. Everywhere else a failed handshake ends the attempt at this server.
   */
  async #greet(opened: ServerConnection, destination: NextHop, signal: AbortSignal): Promise<SmtpClientSession> {
    const { options, appliedPolicy } = destination
    const level = opened.verify ? 'proved' : options.level
    // a socket that was closed no longer knows it
    const sending_ip = opened.socket.localAddress ?? null
    try {
      const session = await SmtpClientSession.open(opened, { ...options, level }, signal, this.#log)
      const mistaken = appliedPolicy?.mode === 'testing' && !policyNames({ mx: appliedPolicy.policy.mx_hosts }, opened.hostname)
      const flaw = mistaken ? { type: 'validation-failure' as const, reason: 'mx-not-in-policy' } : session.flaw
      // where no policy asks for a good certificate, TLS is enough
      const counts = level !== 'proved' && (session.tls === null || appliedPolicy?.mode === 'testing')
      this.#tell(destination, { failure: counts ? flaw : null, opened, sending_ip })
      return session
    } catch (error) {
      if (!(error instanceof Undelivered) || error.step !== 'tls') throw error
      this.#tell(destination, { failure: error.tlsFailure ?? { type: 'validation-failure', reason: null }, opened, sending_ip })
      if (level !== 'may') throw error
      const again = { ...opened, socket: await opened.reconnect() }
      return SmtpClientSession.open(again, { ...options, level: 'clear' }, signal, this.#log)
    }
  }

  /** Reports a session, and before it that the policy could not be fetched. */
  #tell(
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
    const policy = opened?.tlsa && opened.verify ? tlsaPolicy(opened.hostname, opened.tlsa) : appliedPolicy.policy
    this.#report({ domain, policy, failure, ...ends })
  }
}

/** RFC 8689 4.2.1: by MTA-STS, by DNSSEC, or because the operator named it. */
function isVouchedFor({ host, allows }: MailHosts, { verify }: ServerConnection): boolean {
  return host !== undefined || allows !== undefined || verify !== undefined
}

/** Connections are shared by those who speak to the same servers in the same manner. */
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
