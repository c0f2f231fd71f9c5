import type { Log } from '../../core/log.ts'
import type { Connections } from './connections.ts'
import type { MailExchangers, Opened, MailHosts } from './mx.ts'
import { names } from './policies.ts'
import { type Manner, type OutgoingCopy, SmtpClientSession } from './session.ts'
import { noPolicy, tlsaPolicy, type TlsFailure, type TlsListener, type TlsPolicy } from './tls-result.ts'
import type { TlsMemory } from './tls-memory.ts'
import { later, never, type Reached, Undelivered } from './undelivered.ts'

/** Where a message goes, and how that server is to be spoken to. */
export interface NextHop {
  target: MailHosts
  manner: Manner
  /** The policy of the domain as a report shows it, and why it could not be fetched anew; without it no session is reported. */
  held?: AppliedPolicy
}

export interface AppliedPolicy {
  policy: TlsPolicy
  mode: 'enforce' | 'testing' | 'none'
  failure: TlsFailure | undefined
}

/** Who took it, and with which words. */
export interface Receipt extends Reached {
  response: string
}

/** Hears of each server that is tried. */
export type Trying = (server: Pick<Reached, 'hostname' | 'address'>) => void

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
    trying: Trying = () => {},
  ): Promise<Receipt> {
    const key = keyOf(destination)
    return this.#connections.within(key, signal, async () => {
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
    trying: Trying,
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
      if (session.security?.verified) await this.#memory.saw(session.hostname)
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
  async #greet(opened: Opened, destination: NextHop, signal: AbortSignal): Promise<SmtpClientSession> {
    const { manner, held } = destination
    const level = opened.prove ? 'proved' : manner.level
    // a socket that was closed no longer knows it
    const sending_ip = opened.socket.localAddress ?? null
    try {
      const session = await SmtpClientSession.open(opened, { ...manner, level }, signal, this.#log)
      const mistaken = held?.mode === 'testing' && !names({ mx: held.policy.mx_hosts }, opened.hostname)
      const flaw = mistaken ? { type: 'validation-failure' as const, reason: 'mx-not-in-policy' } : session.flaw
      // where no policy asks for a good certificate, TLS is enough
      const counts = level !== 'proved' && (session.tls === null || held?.mode === 'testing')
      this.#tell(destination, { failure: counts ? flaw : null, opened, sending_ip })
      return session
    } catch (error) {
      if (!(error instanceof Undelivered) || error.step !== 'tls') throw error
      this.#tell(destination, { failure: error.tlsFailure ?? { type: 'validation-failure', reason: null }, opened, sending_ip })
      if (level !== 'may') throw error
      const again = { ...opened, socket: await opened.again() }
      return SmtpClientSession.open(again, { ...manner, level: 'clear' }, signal, this.#log)
    }
  }

  /** Reports a session, and before it that the policy could not be fetched. */
  #tell(
    { target, held }: NextHop,
    { failure, opened, sending_ip = null }: { failure: TlsFailure | null; opened?: Opened; sending_ip?: string | null },
  ): void {
    if (!held) return
    const { domain } = target
    const ends = { sending_ip, receiving_ip: opened?.address ?? null, receiving_mx: opened?.hostname ?? null }
    if (held.failure) {
      const policy: TlsPolicy = held.policy.type === 'sts' ? held.policy : { ...noPolicy(domain), type: 'sts' }
      this.#report({ domain, policy, failure: held.failure, ...ends })
    }
    const policy = opened?.tlsa && opened.prove ? tlsaPolicy(opened.hostname, opened.tlsa) : held.policy
    this.#report({ domain, policy, failure, ...ends })
  }
}

/** RFC 8689 4.2.1: by MTA-STS, by DNSSEC, or because the operator named it. */
function isVouchedFor({ host, admits }: MailHosts, { prove }: Opened): boolean {
  return host !== undefined || admits !== undefined || prove !== undefined
}

/** Connections are shared by those who speak to the same servers in the same manner. */
function keyOf({ target, manner }: NextHop): string {
  const server = [target.host ?? target.domain, target.port]
  return [
    ...server,
    manner.level,
    manner.implicit,
    manner.login?.user ?? '',
    target.admits !== undefined,
    target.withoutDane ?? false,
  ].join(' ')
}
