import { randomBytes } from 'node:crypto'
import type { Server, Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { SMTPServer } from 'smtp-server'
import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection'
import type { Log } from '../core/log.ts'
import { MessageOctets } from './data.ts'
import { Guard } from './guard.ts'
import type { ConnectionLimits } from './guard.ts'
import { addressesOf, listenOn } from './listening.ts'
import { recipientOf, senderOf } from './mailbox.ts'
import type { Mailroom } from './mailroom.ts'
import { Refusal } from './refusal.ts'
import { isTrouble, refusalFor, refusalOf, replyError, within } from './replies.ts'
import { headerLength, receivedHops } from './trace.ts'
import { Visit } from './visit.ts'
import type { VisitLimits } from './visit.ts'

/** Durations in milliseconds, sizes in octets. */
export interface ReceiverSettings extends ConnectionLimits, VisitLimits {
  /** The name in the greeting and in our trace fields. */
  hostname: string
  /** `127.0.0.1:2525`, `[::]:25`; port 0 takes any free one. */
  listen: string[]
  /** PEM. */
  tls: { cert: string; key: string }
  /** The largest message, without its final dot. */
  size: number
  /** How long a client must hold its tongue before our 220; 0 asks for none. */
  greeting_delay: number
  max_recipients: number
  idle_timeout: number
  /** How long the mailroom may take for one answer. */
  data_timeout: number
  /** How many Received fields make a loop. */
  max_received: number
}

/** What a full measure of `size` is overrun by before the connection is cut: room for a client that stops when it is done. */
const overrun = 65_536

/** The largest header section we take, in octets. */
const largestHeader = 262_144

/** How long messages in flight may take to end when the box stops, in milliseconds. */
const patience = 5000

/** Takes mail from strangers by SMTP (RFC 5321), refuses what is not for us, and says 250 only when the mailroom has kept it. */
export class Receiver {
  /** Counters since the start; `connections` is how many are open. */
  readonly stats = {
    connections: 0,
    sessions: 0,
    refused_connections: 0,
    refused_recipients: 0,
    refused_messages: 0,
    failed_messages: 0,
    messages: 0,
    octets: 0,
  }
  readonly #mailroom: Mailroom
  readonly #log: Log
  readonly #guard = new Guard()
  readonly #visits = new Map<string, Visit>()
  #settings: ReceiverSettings
  #smtp: SMTPServer | null = null
  #servers: Server[] = []
  #emptied: () => void = () => undefined

  constructor(settings: ReceiverSettings, mailroom: Mailroom, log: Log) {
    this.#settings = settings
    this.#mailroom = mailroom
    this.#log = log
  }

  /** Where the receiver listens; empty unless started. */
  get addresses(): { host: string; port: number }[] {
    return addressesOf(this.#servers)
  }

  /** Listens on every address, or throws and listens on none. */
  async start(): Promise<void> {
    checkCertificate(this.#settings)
    this.#smtp = this.#library()
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
        setTimeout(resolve, patience).unref()
      })
    }
    for (const visit of this.#visits.values()) visit.destroy()
  }

  /** Takes over all settings but `listen`; the certificate for new sessions, the old ones live on. Throws on a bad one and changes nothing. */
  reload(settings: ReceiverSettings): void {
    checkCertificate(settings)
    this.#settings = settings
    this.#smtp?.updateSecureContext({ ...settings.tls, ...changeable(settings) })
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
      disabledCommands: ['AUTH', 'HELP', 'WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD'],
      hideENHANCEDSTATUSCODES: false,
      hideDSN: true,
      hideREQUIRETLS: true,
      rejectOversized: true,
      lenientAddressParsing: true,
      maxCommandLength: 2048,
      onSecure: (socket, session, callback) => {
        this.#secured(socket, session)
        callback()
      },
      onMailFrom: (address, session, answer) => answer(this.#sender(address, session)),
      onRcptTo: (address, session, answer) => {
        this.#recipient(address, session).then(answer).catch(this.#bug)
      },
      onData: (stream, session, answer) => this.#receive(stream, session, answer),
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
      this.stats.refused_connections++
      const text = verdict === 'full' ? '4.3.2 Too many connections' : '4.7.0 Too many connections from your network'
      socket.end(`421 ${text}\r\n`)
      socket.destroySoon()
      return
    }
    this.stats.sessions++
    this.stats.connections = this.#guard.open
    this.#welcome(this.#smtp, socket, address)
  }

  #welcome(smtp: SMTPServer, socket: Socket, address: string): void {
    const connection = new SMTPConnection(smtp, socket, { id: randomBytes(8).toString('hex') })
    smtp.connections.add(connection)
    this.#visits.set(connection.id, new Visit(connection.id, address, socket, connection, () => this.#settings))
    connection.on('error', (error) => smtp.emit('error', error))
    // The library greets after a fixed tenth of a second, by this method; we keep its watch on early talkers but not its clock.
    const greet = connection.connectionReady.bind(connection)
    connection.connectionReady = () => undefined
    connection.init()
    if (this.#settings.greeting_delay > 0) setTimeout(greet, this.#settings.greeting_delay).unref()
    else setImmediate(greet)
  }

  #secured(socket: Socket, session: SMTPServerSession): void {
    if (!(socket instanceof TLSSocket)) return
    const tls = { version: socket.getProtocol() ?? 'unknown', cipher: socket.getCipher().name }
    this.#visits.get(session.id)?.secured(socket, tls)
  }

  #left(id: string): void {
    const visit = this.#visits.get(id)
    if (!visit) return
    this.#visits.delete(id)
    visit.ended()
    this.#guard.release(visit.address)
    this.stats.connections = this.#guard.open
    if (this.#visits.size === 0) this.#emptied()
  }

  #sender(address: SMTPServerAddress, session: SMTPServerSession): Error | null {
    try {
      checkParameters(address, ['SIZE', 'BODY', 'SMTPUTF8'])
      // Read again: the library leaves those of a refused MAIL command behind.
      session.envelope.smtpUtf8 = argument(address, 'SMTPUTF8') === true
      session.envelope.bodyType = String(argument(address, 'BODY') ?? '7bit').toLowerCase()
      address.address = senderOf(address.address, session.envelope.smtpUtf8)
      return null
    } catch (error) {
      return this.#reply(error, session.id)
    }
  }

  async #recipient(address: SMTPServerAddress, session: SMTPServerSession): Promise<Error | null> {
    try {
      checkParameters(address, [])
      const mailbox = recipientOf(address.address, session.envelope.smtpUtf8 ?? false)
      await within(this.#settings.data_timeout, this.#mailroom.ownerOf(mailbox))
      address.address = mailbox
      return null
    } catch (error) {
      this.stats.refused_recipients++
      return this.#reply(error, session.id)
    }
  }

  #receive(stream: SMTPServerDataStream, session: SMTPServerSession, answer: Answer): void {
    const visit = this.#visits.get(session.id)
    if (!visit) return
    const { size } = this.#settings
    const octets = new MessageOctets(size)
    visit.phase = 'receiving'
    stream.on('data', (chunk: Buffer) => {
      octets.add(chunk)
      if (octets.size <= size + overrun) return
      stream.removeAllListeners('data')
      this.stats.refused_messages++
      visit.cut(refusalOf('size'))
    })
    // The client went away in the middle: nobody is left to answer.
    stream.on('error', () => undefined)
    stream.on('end', () => {
      visit.phase = 'keeping'
      this.#settle(visit, session, octets, answer).catch(this.#bug)
    })
  }

  async #settle(visit: Visit, session: SMTPServerSession, octets: MessageOctets, answer: Answer): Promise<void> {
    try {
      const id = await this.#keep(visit, session, octets)
      this.stats.messages++
      this.stats.octets += octets.size
      visit.settle('message', () => answer(null, `2.0.0 Ok: queued as ${id}`))
    } catch (error) {
      this.stats[isTrouble(error) ? 'failed_messages' : 'refused_messages']++
      const reply = this.#reply(error, session.id)
      visit.settle(octets.flaw === 'bare' ? 'hang up' : 'message', () => answer(reply))
    }
  }

  async #keep(visit: Visit, session: SMTPServerSession, octets: MessageOctets): Promise<string> {
    if (octets.flaw) throw refusalOf(octets.flaw)
    const raw = octets.whole()
    if (headerLength(raw) > largestHeader) throw new Refusal(552, '5.3.4', 'The header of the message is too large')
    if (receivedHops(raw) > this.#settings.max_received) throw new Refusal(554, '5.4.6', 'Too many hops, this looks like a loop')
    const { envelope } = session
    return within(
      this.#settings.data_timeout,
      this.#mailroom.keep(
        {
          remote_address: session.remoteAddress,
          helo: session.hostNameAppearsAs,
          mail_from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          recipients: [...new Set(envelope.rcptTo.map((recipient) => recipient.address))],
          smtputf8: envelope.smtpUtf8 ?? false,
          eight_bit: envelope.bodyType === '8bitmime',
          esmtp: session.openingCommand === 'EHLO',
          tls: visit.tls,
          session: `${session.id}.${session.transaction}`,
        },
        raw,
      ),
    )
  }

  #reply(error: unknown, session: string): Error {
    if (isTrouble(error)) this.#log.error({ err: error, session }, 'Mail could not be taken')
    return replyError(refusalFor(error))
  }

  readonly #bug = (error: unknown): void => {
    this.#log.error({ err: error }, 'An SMTP session broke')
  }
}

type Answer = (error?: Error | null, text?: string) => void

/** The library's option for each setting that may change while it runs. */
function changeable(settings: ReceiverSettings) {
  return {
    name: settings.hostname,
    size: settings.size,
    maxRecipients: settings.max_recipients,
    socketTimeout: settings.idle_timeout,
  }
}

/** The library would fall back to a key that everyone has, or lose the certificate it holds. */
function checkCertificate({ tls }: ReceiverSettings): void {
  if (!tls.cert || !tls.key) throw new Error('The mail receiver needs a TLS certificate and its key')
  createSecureContext(tls)
}

function argument(address: SMTPServerAddress, name: string): string | true | undefined {
  return address.args === false ? undefined : address.args[name]
}

function checkParameters(address: SMTPServerAddress, known: string[]): void {
  if (address.args === false) return
  const unknown = Object.keys(address.args).some((name) => !known.includes(name))
  if (unknown) throw new Refusal(555, '5.5.4', 'Parameter not recognized')
}
