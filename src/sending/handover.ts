import type { Connections } from './connections.ts'
import type { MailExchangers, Opened, Target } from './mx.ts'
import { Session } from './session.ts'
import type { Copy, Manner } from './session.ts'
import type { TlsMemory } from './tls-memory.ts'
import { later, never, Undelivered } from './undelivered.ts'

/** Where a message goes, and how that server is to be spoken to. */
export interface Destination {
  target: Target
  manner: Manner
}

/** Who took it, and with which words. */
export interface Receipt {
  response: string
  hostname: string
  tls: string | null
}

/** Hands one message to one destination: over a connection that is there, or to the first server of the domain that will speak with us. */
export class Handover {
  readonly #exchangers: MailExchangers
  readonly #connections: Connections
  readonly #memory: TlsMemory

  constructor(exchangers: MailExchangers, connections: Connections, memory: TlsMemory) {
    this.#exchangers = exchangers
    this.#connections = connections
    this.#memory = memory
  }

  /** `octets` are read when there is somebody to send them to. Throws Undelivered. */
  async deliver(
    destination: Destination,
    copy: Omit<Copy, 'octets'>,
    octets: () => Promise<Buffer>,
    signal: AbortSignal,
  ): Promise<Receipt> {
    const key = keyOf(destination)
    return this.#connections.within(key, signal, async () => {
      const session = (await this.#connections.take(key, signal)) ?? (await this.#open(destination, copy, signal))
      try {
        const response = await session.send({ ...copy, octets: await octets() }, signal)
        this.#connections.keep(key, session)
        return { response, hostname: session.hostname, tls: session.tls }
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
        throw error.at(session.hostname, session.tls)
      }
    })
  }

  async #open({ target, manner }: Destination, copy: Omit<Copy, 'octets'>, signal: AbortSignal): Promise<Session> {
    let failure: Undelivered | undefined
    // one server that may take it later outweighs those that never will
    const note = (said: Undelivered): void => {
      if (!failure || (failure.permanent && !said.permanent)) failure = said
    }
    try {
      for await (const opened of this.#exchangers.servers(target, signal)) {
        try {
          if (copy.require_tls && !isVouchedFor(target, opened)) {
            opened.socket.destroy()
            throw never(`neither a policy nor the DNS vouches for ${opened.hostname} (RFC 8689)`, '5.7.30')
          }
          return await this.#remembered(target, await this.#greet(opened, manner, signal))
        } catch (error) {
          if (!(error instanceof Undelivered)) throw error
          const said = error.step === 'tls' && copy.require_tls ? never(error.message, '5.7.30') : error
          note(said.at(opened.hostname, null))
        }
      }
    } catch (error) {
      if (!(error instanceof Undelivered)) throw error
      note(error)
    }
    throw failure!
  }

  /** Throws when a server of a domain, known for its TLS, has none now: somebody may be taking it away to read what is sent. */
  async #remembered({ host }: Target, session: Session): Promise<Session> {
    // of a relay the settings say what it must have
    if (host !== undefined) return session
    try {
      if (session.isChecked) await this.#memory.saw(session.hostname)
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
  async #greet(opened: Opened, manner: Manner, signal: AbortSignal): Promise<Session> {
    const level = opened.prove ? 'proved' : manner.level
    try {
      return await Session.open(opened, { ...manner, level }, signal)
    } catch (error) {
      if (!(error instanceof Undelivered) || error.step !== 'tls' || level !== 'may') throw error
      return Session.open({ ...opened, socket: await opened.again() }, { ...manner, level: 'clear' }, signal)
    }
  }
}

/** RFC 8689 4.2.1: by MTA-STS, by DNSSEC, or because the operator named it. */
function isVouchedFor({ host, admits }: Target, { prove }: Opened): boolean {
  return host !== undefined || admits !== undefined || prove !== undefined
}

/** Connections are shared by those who speak to the same servers in the same manner. */
function keyOf({ target, manner }: Destination): string {
  const server = [target.host ?? target.domain, target.port]
  return [...server, manner.level, manner.implicit, manner.login?.user ?? '', target.admits !== undefined].join(' ')
}
