import { randomBytes } from 'node:crypto'
import type { Server, Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { SMTPServer } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection'
import type { Log } from '../core/log.ts'
import type { Budget } from './memory-budget.ts'
import { preserveALabels } from './a-labels.ts'
import { dialogueLogger } from './dialogue-log.ts'
import type { ListenerMetrics } from './counters.ts'
import { ConnectionLimiter, type ConnectionLimits } from './connection-limiter.ts'
import { TransactionHandler, type TransactionLimits, type TransactionOptions } from './transaction.ts'
import type { Client } from './session-log.ts'
import { addressesOf, listenOn } from '../net/listen.ts'
import type { SmtpCredentials, LoginAttempts } from './logins.ts'
import type { DeliveryTarget } from './delivery-target.ts'
import { isTrouble, refusalFor, replyError } from './replies.ts'
import { SmtpSession, type SmtpSessionLimits } from './session.ts'

/** Durations in milliseconds, sizes in octets. */
export interface ReceiverSettings extends ConnectionLimits, SmtpSessionLimits, TransactionLimits {
  /** The name in the greeting and in our trace fields. */
  hostname: string
  /** `127.0.0.1:2525`, `[::]:25`; port 0 takes any free one. */
  listen: string[]
  /** PEM. */
  tls: { cert: string; key: string }
  /** TLS from the first octet (RFC 8314), in place of STARTTLS. */
  implicit_tls?: boolean
  /** How long a client must hold its tongue before our 220; 0 asks for none. */
  greeting_delay: number
  max_recipients: number
  idle_timeout: number
}

/** How long messages in flight may take to end when the box stops, in milliseconds. */
const timeout = 5000

const disabled = ['HELP', 'WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD']

/**
 * Takes mail by SMTP (RFC 5321), from strangers for a mailroom, or from who logs in for theirs (RFC 6409). Refuses what is not wanted
 * there, and says 250 only when the mailroom has kept it.
 */
export class Receiver {
  readonly #intake: TransactionHandler
  readonly #logins: LoginAttempts | null
  readonly #counts = { connections: 0, sessions: 0, refused_connections: 0 }
  readonly #log: Log
  readonly #figures: ListenerMetrics | undefined
  readonly #guard = new ConnectionLimiter()
  readonly #visits = new Map<string, SmtpSession>()
  #settings: ReceiverSettings
  #smtp: SMTPServer | null = null
  #servers: Server[] = []
  #emptied: () => void = () => undefined

  /** What all messages on their way hold counts in `budget`, if one is given. */
  constructor(settings: ReceiverSettings, house: DeliveryTarget | LoginAttempts, log: Log, beside: TransactionOptions = {}) {
    this.#settings = settings
    this.#log = log
    this.#figures = beside.figures
    this.#logins = 'enter' in house ? house : null
    this.#intake = new TransactionHandler(() => this.#settings, 'enter' in house ? null : house, log, beside)
  }

  get budget(): Budget {
    return this.#intake.budget
  }

  /** Counts since the box started, octets of kept messages among them; `connections` is how many are open now, `octets_held` of messages on their way. */
  get stats(): Readonly<Record<keyof TransactionHandler['stats'] | 'connections' | 'sessions' | 'refused_connections', number>> {
    return { ...this.#counts, ...this.#intake.stats }
  }

  /** Where the receiver listens; empty unless started. */
  get addresses(): { host: string; port: number }[] {
    return addressesOf(this.#servers)
  }

  /** Listens on every address, or throws and listens on none. */
  async start(): Promise<void> {
    checkCertificate(this.#settings)
    this.#smtp = this.#library()
    if (this.#smtp) this.#smtp.logger = dialogueLogger(this.#log, (session) => this.#visits.get(session)?.address)
    this.#servers = await listenOn(
      this.#settings.listen,
      (socket) => this.#accept(socket),
      (error) => this.#log.warn({ err: error }, 'A connection could not be accepted'),
    )
  }

  /** Takes no more; waits at most five seconds for messages on their way in. */
  async stop(): Promise<void> {
    for (const server of this.#servers) server.close()
    this.#servers = []
    for (const visit of this.#visits.values()) visit.leave()
    if (this.#visits.size > 0) {
      await new Promise<void>((resolve) => {
        this.#emptied = resolve
        setTimeout(resolve, timeout).unref()
      })
    }
    for (const visit of this.#visits.values()) visit.destroy()
    this.#intake.journal.flush()
  }

  /** Takes over all settings but `listen`; the certificate for new sessions, the old ones live on. Throws on a bad one and changes nothing. */
  reload(settings: ReceiverSettings): void {
    checkCertificate(settings)
    this.#settings = settings
    this.#smtp?.updateSecureContext({ ...settings.tls, ...changeable(settings) })
    if (this.#smtp) this.#smtp.logger = dialogueLogger(this.#log, (session) => this.#visits.get(session)?.address)
  }

  #library(): SMTPServer {
    const smtp = new SMTPServer({
      ...this.#settings.tls,
      ...changeable(this.#settings),
      minVersion: 'TLSv1.2',
      logger: false,
      banner: '',
      heloResponse: '%s',
      disableReverseLookup: true,
      authOptional: true,
      authMethods: ['PLAIN', 'LOGIN'],
      // each session that is under TLS and may log in has its own list
      disabledCommands: ['AUTH', ...disabled],
      secure: this.#settings.implicit_tls === true,
      needsUpgrade: this.#settings.implicit_tls === true,
      hideENHANCEDSTATUSCODES: false,
      hideDSN: true,
      hideREQUIRETLS: this.#logins === null,
      rejectOversized: true,
      lenientAddressParsing: true,
      maxCommandLength: 2048,
      onSecure: (socket, session, callback) => {
        if (this.#logins) session.disabledCommands = disabled
        this.#secured(socket, session.id)
        callback()
      },
      onAuth: (credentials, session, answer) => this.#enter(credentials, session.id, answer),
      // Answered on a fresh stack, so that a heap of pipelined commands leaves every other session its turn.
      onMailFrom: (path, session, answer) => {
        this.#intake
          .sender(this.#visits.get(session.id), path, session)
          .then((error) => setImmediate(answer, error))
          .catch((error: unknown) => this.#log.error({ err: error, session: session.id }, 'An SMTP session broke'))
      },
      onRcptTo: (path, session, answer) => {
        this.#intake
          .recipient(this.#visits.get(session.id), path, session)
          .then((error) => setImmediate(answer, error))
          .catch((error: unknown) => this.#log.error({ err: error, session: session.id }, 'An SMTP session broke'))
      },
      onData: (stream, session, answer) => {
        const visit = this.#visits.get(session.id)
        if (visit) this.#intake.message(visit, stream, session, answer)
      },
      onClose: (session) => this.#left(session.id),
    })
    // Without a listener one reset connection ends the process.
    smtp.on('error', (error) => this.#log.debug({ err: error }, 'An SMTP connection failed'))
    return smtp
  }

  #accept(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const address = socket.remoteAddress
    if (!this.#smtp || address === undefined) {
      socket.destroy()
      return
    }
    const verdict = this.#guard.admit(address, this.#settings)
    if (verdict !== 'welcome') {
      this.#counts.refused_connections++
      const text = verdict === 'full' ? '4.3.2 Too many connections' : '4.7.0 Too many connections from your network'
      this.#intake.journal.connection(address, `421 ${text}`)
      socket.end(`421 ${text}\r\n`)
      socket.destroySoon()
      return
    }
    this.#counts.sessions++
    this.#counts.connections = this.#guard.open
    this.#welcome(this.#smtp, socket, address)
  }

  #welcome(smtp: SMTPServer, socket: Socket, address: string): void {
    const connection = new SMTPConnection(smtp, socket, { id: randomBytes(8).toString('hex') })
    smtp.connections.add(connection)
    preserveALabels(connection)
    const visit = new SmtpSession(connection.id, address, socket, connection, () => this.#settings, this.#logins !== null)
    this.#visits.set(connection.id, visit)
    const { journal } = this.#intake
    const client = (): Client => ({ session: connection.id, ip: address, helo: visit.helo, tls: visit.tls })
    visit.refused = (reply, command) => journal.command(client(), command, reply)
    let unsecured = false
    connection.on('error', (error) => {
      // the library's own mark on what becomes of a handshake, of which it tells twice
      if ('meta' in error && !unsecured) {
        this.#figures?.secured(null)
        journal.handshake(client(), whyFailed(error))
      }
      unsecured ||= 'meta' in error
      smtp.emit('error', error)
    })
    // The library greets after a fixed tenth of a second, by this method; we keep its watch on early talkers but not its clock.
    const greet = connection.connectionReady.bind(connection)
    connection.connectionReady = () => undefined
    connection.init()
    if (this.#settings.implicit_tls) visit.greet = () => this.#greet(greet)
    else this.#greet(greet)
  }

  #greet(greet: () => void): void {
    if (this.#settings.greeting_delay > 0) setTimeout(greet, this.#settings.greeting_delay).unref()
    else setImmediate(greet)
  }

  #enter(credentials: SmtpCredentials, id: string, answer: (error: Error | null, entry?: { user: string }) => void): void {
    const visit = this.#visits.get(id)
    if (!this.#logins || !visit) return answer(replyError(refusalFor(null)))
    this.#logins.enter(visit, id, credentials).then(
      (user) => setImmediate(answer, null, { user }),
      (error: unknown) => {
        if (isTrouble(refusalFor(error))) this.#log.error({ err: error, session: id }, 'A login could not be tried')
        setImmediate(answer, replyError(refusalFor(error)))
      },
    )
  }

  #secured(socket: Socket, id: string): void {
    const visit = this.#visits.get(id)
    // with TLS from the first octet the library tells of it a second time, before its greeting
    if (!(socket instanceof TLSSocket) || !visit || visit.tls) return
    // The library listens for one error of a TLS socket; a second must not end the process either.
    socket.on('error', () => socket.destroy())
    const version = socket.getProtocol() ?? 'unknown'
    this.#figures?.secured(version)
    visit.secured(socket, { version, cipher: socket.getCipher().name })
  }

  #left(id: string): void {
    const visit = this.#visits.get(id)
    if (!visit) return
    this.#visits.delete(id)
    visit.ended()
    this.#guard.release(visit.address)
    this.#counts.connections = this.#guard.open
    if (this.#visits.size === 0) this.#emptied()
  }
}

/** The library's option for each setting that may change while it runs. */
function changeable(settings: ReceiverSettings) {
  return {
    name: settings.hostname,
    size: settings.size,
    maxRecipients: settings.max_recipients,
    socketTimeout: settings.idle_timeout,
  }
}

/** Why there is no TLS; the library writes its own words over those of OpenSSL. */
function whyFailed(error: Error & { meta?: { message?: string } }): string {
  return error.meta?.message ?? error.message
}

/** The library would fall back to a key that everyone has, or lose the certificate it holds. */
function checkCertificate({ tls }: ReceiverSettings): void {
  if (!tls.cert || !tls.key) throw new Error('The mail receiver needs a TLS certificate and its key')
  createSecureContext(tls)
}
