/* oxlint-disable no-underscore-dangle -- the library's own names */
import { randomBytes } from 'node:crypto'
import type { Server, Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { SMTPServer } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection'
import type { Log } from '../core/log.ts'
import type { MemoryBudget } from './memory-budget.ts'
import { preserveALabels } from './paths.ts'
import { dialogueLogger } from './dialogue-log.ts'
import { ConnectionLimiter, type ConnectionLimits } from '../net/connection-limiter.ts'
import { TransactionHandler, type TransactionLimits, type TransactionOptions } from './transaction.ts'
import type { Client, ListenerMetrics } from './session-log.ts'
import { type LimitedRecords, limitRecords } from '../net/tls-records.ts'
import { addressesOf, type BoundEndpoint, type Endpoint, listenOn } from '../net/listen.ts'
import { Networks } from '../net/networks.ts'
import { ProxiedConnections } from '../net/proxied-connections.ts'
import { readingTurns } from '../net/reading-turns.ts'
import { LoginAttempts, type SmtpCredentials } from './logins.ts'
import type { DeliveryTarget } from './delivery-target.ts'
import { isLocalError, refusalFor, replyError } from './replies.ts'
import { SmtpSession, type SmtpSessionLimits } from './session.ts'

/** Durations in milliseconds, sizes in bytes. */
export interface ReceiverSettings extends ConnectionLimits, SmtpSessionLimits, TransactionLimits {
  /** The name in the greeting and in our trace fields. */
  hostname: string
  listen: Endpoint[]
  /** PEM. */
  tls: { cert: string; key: string }
  /** TLS from the first octet (RFC 8314), in place of STARTTLS. */
  implicit_tls?: boolean
  /** Proxies whose connections begin with a PROXY protocol header. */
  proxy_protocol: readonly string[]
  /** Delay before the 220 greeting, during which a client must not send; 0 for no delay. */
  greeting_delay: number
  max_recipients: number
  idle_timeout: number
}

/** How long `stop` waits for messages being received, in milliseconds. */
const stopTimeout = 5000

const disabled = ['HELP', 'WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD']

/**
 * An SMTP server (RFC 5321): either receives mail for a delivery target, or accepts submissions of authenticated clients (RFC 6409). It sends
 * 250 only after the delivery target has stored the message.
 */
export class Receiver {
  readonly #transactions: TransactionHandler
  readonly #logins: LoginAttempts | null
  readonly #counts = { sessions: 0, refused_connections: 0 }
  readonly #log: Log
  readonly #metrics: ListenerMetrics | undefined
  readonly #limiter = new ConnectionLimiter(() => this.#settings)
  readonly #sessions = new Map<string, SmtpSession>()
  readonly #proxied: ProxiedConnections
  #proxies: Networks
  #settings: ReceiverSettings
  #smtp: SMTPServer | null = null
  #servers: Server[] = []
  #onEmpty: () => void = () => undefined

  /** The memory of all messages being received counts in `budget`, if given. */
  constructor(settings: ReceiverSettings, target: DeliveryTarget | LoginAttempts, log: Log, options: TransactionOptions = {}) {
    this.#settings = settings
    this.#proxies = new Networks(settings.proxy_protocol)
    this.#proxied = new ProxiedConnections(() => this.#proxies, log)
    this.#log = log
    this.#metrics = options.metrics
    this.#logins = target instanceof LoginAttempts ? target : null
    this.#transactions = new TransactionHandler(
      () => this.#settings,
      target instanceof LoginAttempts ? null : target,
      log,
      options,
    )
  }

  get budget(): MemoryBudget {
    return this.#transactions.budget
  }

  /** Counts since the start. `connections` is the number open now, `octets_held` the bytes in memory of messages being received. */
  get stats(): Readonly<Record<keyof TransactionHandler['stats'] | 'connections' | 'sessions' | 'refused_connections', number>> {
    return { connections: this.#limiter.open, ...this.#counts, ...this.#transactions.stats }
  }

  /** The addresses listened on; empty unless started. */
  get addresses(): BoundEndpoint[] {
    return addressesOf(this.#servers)
  }

  /** Listens on every address; on failure it throws and listens on none. */
  async start(): Promise<void> {
    checkCertificate(this.#settings)
    this.#smtp = this.#library()
    if (this.#smtp) this.#smtp.logger = dialogueLogger(this.#log, (session) => this.#sessions.get(session)?.address)
    this.#servers = await listenOn(
      this.#settings.listen,
      (socket) => this.#proxied.accept(socket, (served) => this.#accept(served)),
      (error) => this.#log.warn({ err: error }, 'connection could not be accepted'),
    )
  }

  /** Stops accepting connections, and waits at most five seconds for messages being received. */
  async stop(): Promise<void> {
    for (const server of this.#servers) server.close()
    this.#servers = []
    this.#proxied.cut()
    for (const smtpSession of this.#sessions.values()) smtpSession.shutDown()
    if (this.#sessions.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve
        setTimeout(resolve, stopTimeout).unref()
      })
    }
    for (const smtpSession of this.#sessions.values()) smtpSession.destroy()
    this.#transactions.sessionLog.flush()
  }

  /** Applies all settings except `listen`; the certificate applies to new sessions. Throws on an invalid certificate and changes nothing. */
  reload(settings: ReceiverSettings): void {
    checkCertificate(settings)
    this.#settings = settings
    this.#proxies = new Networks(settings.proxy_protocol)
    this.#smtp?.updateSecureContext({ ...settings.tls, ...changeable(settings) })
    if (this.#smtp) this.#smtp.logger = dialogueLogger(this.#log, (session) => this.#sessions.get(session)?.address)
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
      // a session under TLS that may log in gets its own list
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
      onAuth: (credentials, session, answer) => this.#login(credentials, session.id, answer),
      // setImmediate lets other sessions run between pipelined commands.
      onMailFrom: (path, session, answer) => {
        this.#transactions
          .sender(this.#sessions.get(session.id), path, session)
          .then((error) => setImmediate(answer, error))
          .catch((error: unknown) => this.#log.error({ err: error, session: session.id }, 'SMTP session failed'))
      },
      onRcptTo: (path, session, answer) => {
        this.#transactions
          .recipient(this.#sessions.get(session.id), path, session)
          .then((error) => setImmediate(answer, error))
          .catch((error: unknown) => this.#log.error({ err: error, session: session.id }, 'SMTP session failed'))
      },
      onData: (stream, session, answer) => {
        const smtpSession = this.#sessions.get(session.id)
        if (smtpSession) this.#transactions.message(smtpSession, stream, session, answer)
      },
      onClose: (session) => this.#ended(session.id),
    })
    // Without a listener a reset connection ends the process.
    smtp.on('error', (error) => this.#log.debug({ err: error }, 'SMTP connection failed'))
    return smtp
  }

  #accept(socket: Socket): void {
    readingTurns.accepted()
    socket.on('error', () => socket.destroy())
    const address = socket.remoteAddress
    if (!this.#smtp || address === undefined) {
      socket.destroy()
      return
    }
    let admission = this.#limiter.admit(address)
    if (admission === 'server_full' && this.#makeRoom(address)) admission = this.#limiter.admit(address)
    if (typeof admission === 'string') {
      this.#counts.refused_connections++
      const text = admission === 'server_full' ? '4.3.2 Too many connections' : '4.7.0 Too many connections from your network'
      this.#transactions.sessionLog.connection(address, `421 ${text}`)
      socket.end(`421 ${text}\r\n`)
      socket.destroySoon()
      return
    }
    this.#counts.sessions++
    this.#open(this.#smtp, socket, address, admission)
  }

  /**
   * Ends the oldest session that waits for a command, in the network with most sessions for its width, if that has more than the network of the new one would
   * have. One that is in a transaction stays. Returns false where there is none.
   */
  #makeRoom(address: string): boolean {
    let most = this.#limiter.loadOf(address) + 1
    let oldest: SmtpSession | undefined
    for (const session of this.#sessions.values()) {
      if (!session.idle) continue
      const load = this.#limiter.loadOf(session.address)
      if (load <= most) continue
      most = load
      oldest = session
    }
    oldest?.giveWay()
    return oldest !== undefined
  }

  #open(smtp: SMTPServer, socket: Socket, address: string, onEnded: () => void): void {
    const connection = new SMTPConnection(smtp, socket, { id: randomBytes(8).toString('hex') })
    smtp.connections.add(connection)
    preserveALabels(connection)
    const records = limitTls(connection)
    const smtpSession = new SmtpSession(connection.id, address, socket, connection, () => this.#settings, this.#logins !== null)
    smtpSession.onEnded = onEnded
    this.#sessions.set(connection.id, smtpSession)
    const { sessionLog } = this.#transactions
    const client = (): Client => ({ session: connection.id, ip: address, helo: smtpSession.helo, tls: smtpSession.tls })
    smtpSession.onRefused = (reply, command) => sessionLog.command(client(), command, reply)
    smtpSession.onSecured = (secured) => {
      records.complete(secured)
      if (this.#settings.implicit_tls) this.#greet(greet)
    }
    let unsecured = false
    connection.on('error', (error) => {
      // `meta` is how the library marks handshake errors, which it emits twice
      if ('meta' in error && !unsecured) {
        this.#metrics?.secured(null)
        sessionLog.handshake(client(), whyFailed(error))
      }
      unsecured ||= 'meta' in error
      smtp.emit('error', error)
    })
    // The library greets by this method after a fixed 100 ms. Its check for early talkers is kept, its delay is replaced.
    const greet = connection.connectionReady.bind(connection)
    connection.connectionReady = () => undefined
    connection.init()
    if (!this.#settings.implicit_tls) this.#greet(greet)
  }

  #greet(greet: () => void): void {
    if (this.#settings.greeting_delay > 0) setTimeout(greet, this.#settings.greeting_delay).unref()
    else setImmediate(greet)
  }

  #login(credentials: SmtpCredentials, id: string, answer: (error: Error | null, entry?: { user: string }) => void): void {
    const smtpSession = this.#sessions.get(id)
    if (!this.#logins || !smtpSession) return answer(replyError(refusalFor(null)))
    this.#logins.authenticate(smtpSession, id, credentials).then(
      (user) => setImmediate(answer, null, { user }),
      (error: unknown) => {
        if (isLocalError(refusalFor(error))) this.#log.error({ err: error, session: id }, 'login could not be checked')
        setImmediate(answer, replyError(refusalFor(error)))
      },
    )
  }

  #secured(socket: Socket, id: string): void {
    const smtpSession = this.#sessions.get(id)
    // with implicit TLS the library calls this a second time, before its greeting
    if (!(socket instanceof TLSSocket) || !smtpSession || smtpSession.tls) return
    // The library handles only the first error of a TLS socket; another must not end the process.
    socket.on('error', () => socket.destroy())
    const version = socket.getProtocol() ?? 'unknown'
    this.#metrics?.secured(version)
    smtpSession.secured(socket, { version, cipher: socket.getCipher().name })
  }

  #ended(id: string): void {
    const smtpSession = this.#sessions.get(id)
    if (!smtpSession) return
    this.#sessions.delete(id)
    smtpSession.ended()
    if (this.#sessions.size === 0) this.#onEmpty()
  }
}

/** Has the library read the TLS records of this client within limits. */
function limitTls(connection: SMTPConnection): { complete(secured: Socket): void } {
  let limited: LimitedRecords | undefined
  const upgrade = connection.upgrade.bind(connection)
  connection.upgrade = (...callbacks) => {
    const { _socket: socket, _parser: parser } = connection
    if (parser) socket.unpipe(parser)
    socket.removeAllListeners()
    limited = limitRecords(socket)
    connection._socket = limited.stream as Socket
    upgrade(...callbacks)
  }
  return { complete: (secured) => limited?.complete(secured) }
}

/** The library's options for settings that can be reloaded. */
function changeable(settings: ReceiverSettings) {
  return {
    name: settings.hostname,
    size: settings.size,
    maxRecipients: settings.max_recipients,
    socketTimeout: settings.idle_timeout,
  }
}

/** The reason of a TLS failure: the library replaces the message of OpenSSL by its own. */
function whyFailed(error: Error & { meta?: { message?: string } }): string {
  return error.meta?.message ?? error.message
}

/** Without this check the library would fall back to a publicly known key, or drop its current certificate. */
function checkCertificate({ tls }: ReceiverSettings): void {
  if (!tls.cert || !tls.key) throw new Error('The SMTP receiver requires a TLS certificate and its key')
  createSecureContext(tls)
}
