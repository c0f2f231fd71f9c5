/* oxlint-disable no-underscore-dangle -- the library's own names */
import type { Socket } from 'node:net'
import { networkOf } from '../net/networks.ts'
import { redactCommand } from './dialogue-log.ts'
import { feedMessage, type Parser } from './unstuffing.ts'
import type { DeliveryTarget } from './delivery-target.ts'
import type { Refusal } from './replies.ts'

/** The part of the library's connection that a session uses. `send` answers one command; `close` ends the session after it. */
export interface Connection {
  send(code: number, data?: string | string[] | null, context?: string | false): void
  close(): void
  /** `error` is the last reply of 400 or above, as sent. */
  session: { envelope?: { rcptTo: unknown[] }; error?: string | undefined }
  hostNameAppearsAs: string | false
  _parser: Parser | false
  _onCommand(command: string | Buffer, callback?: () => void): void
  /** Set while the next line is part of an AUTH exchange, not a command. */
  _nextHandler: unknown
}

export interface SmtpSessionLimits {
  max_errors: number
  max_commands: number
  /** How long a session may last without a message. A message being received has its own limit (`pace`). */
  session_timeout: number
  /** Bytes of a message that must arrive within each period. */
  pace: { octets: number; within: number }
}

/** Recipients beyond the limit in one session that do not count as errors (Postfix: smtpd_recipient_overshoot_limit). */
const overshootAllowance = 1000

/** Delay before the connection is closed after the reply to an oversized message, in milliseconds. */
const closeDelay = 1000

/**
 * The session of one client: its phase, its counts of commands and errors, and the one place through which its replies pass. Every command is
 * answered exactly once, so counting replies counts commands, pipelined ones too.
 */
export class SmtpSession {
  readonly id: string
  /** The address as counted by the connection limiter. */
  readonly address: string
  /** Set once the session is under TLS. */
  tls: { version: string; cipher: string } | null = null
  /** The delivery target of the authenticated client. */
  deliveryTarget: DeliveryTarget | null = null
  failedLogins = 0
  /** Called with each reply of 400 or above, as sent, and the command it answers unless that may hold a secret. */
  onRefused: (reply: string, command: string | null) => void = () => undefined
  /** Called once the session is under TLS. */
  onSecured: (socket: Socket) => void = () => undefined
  /** Called when the connection has ended. */
  onEnded: () => void = () => undefined
  /** `receiving` a message: only its pace is checked. `storing` it: only the timeout of the delivery target applies. */
  phase: 'commands' | 'receiving' | 'storing' = 'commands'
  #socket: Socket
  readonly #connection: Connection
  readonly #write: Connection['send']
  readonly #limits: () => SmtpSessionLimits
  readonly #sessionTimer: NodeJS.Timeout
  readonly #requiresTls: boolean
  #commands = 0
  #errors = 0
  #overshoot = 0
  #answering: 'message' | 'close' | null = null
  #shuttingDown = false
  #pace: NodeJS.Timeout | undefined
  #received = 0
  #command: string | Buffer | null = null
  #logRefusal: ((reply: string) => void) | null = null
  #pendingReply = ''
  #ended = false
  #isClosing = false

  /** `requiresTls`: clients must log in, and only under TLS. */
  constructor(
    id: string,
    address: string,
    socket: Socket,
    connection: Connection,
    limits: () => SmtpSessionLimits,
    requiresTls: boolean = false,
  ) {
    this.#requiresTls = requiresTls
    this.id = id
    this.address = address
    this.#socket = socket
    this.#connection = connection
    this.#write = connection.send.bind(connection)
    this.#limits = limits
    connection.send = (code, data, context) => this.#reply(code, data, context)
    const run = connection._onCommand.bind(connection)
    connection._onCommand = (command, callback) => {
      this.#command = connection._nextHandler ? null : command
      // the library ignores it, and takes what follows for the message (RFC 5321 4.1.1.4)
      if (this.#command === null || !/^DATA\s+\S/i.test(String(command))) return run(command, callback)
      this.#reply(501, '5.5.4 DATA has no parameters', false)
      callback?.()
    }
    this.#sessionTimer = setTimeout(() => this.#expire(), limits().session_timeout)
  }

  get helo(): string {
    return this.#connection.hostNameAppearsAs || ''
  }

  /** True if this server is ending the session, as opposed to a client that disconnected. */
  get closing(): boolean {
    return this.#isClosing || this.#shuttingDown
  }

  /** Logs the next refusal by `write` in place of `onRefused`; with `reply` itself if the client disconnects before it is sent. */
  logNextRefusal(reply: string, write: (reply: string) => void): void {
    if (this.#ended) return write(reply)
    this.#logRefusal = write
    this.#pendingReply = reply
  }

  /** Called when the session is under TLS, which uses another socket. */
  secured(socket: Socket, tls: { version: string; cipher: string }): void {
    this.#socket = socket
    this.tls = tls
    this.onSecured(socket)
  }

  /** Begins to receive a message. */
  beginData(): void {
    this.phase = 'receiving'
    const { _parser: parser } = this.#connection
    if (parser) feedMessage(parser, networkOf(this.address))
    this.#received = 0
    this.#pace = setInterval(() => this.#checkPace(), this.#limits().pace.within)
  }

  /** Counts bytes of the message that were received. */
  countData(octets: number): void {
    this.#received += octets
  }

  /** The message was received whole; the client waits for the reply. */
  endData(): void {
    this.phase = 'storing'
    clearInterval(this.#pace)
  }

  /** Runs the callback that makes the library answer a message. `close` ends the session, discarding pipelined commands. */
  answerData(then: 'message' | 'close', answer: () => void): void {
    this.#answering = then
    answer()
  }

  /** Ends the session of a client that keeps sending beyond the size limit: sends the refusal, and reads no more. */
  abortData(refusal: Refusal): void {
    this.#sendReply(refusal.code, refusal.enhanced, refusal.text)
    this.#isClosing = true
    clearInterval(this.#pace)
    this.#connection.close()
    this.#socket.pause()
    setTimeout(() => this.#socket.destroy(), closeDelay).unref()
  }

  /** Closes the session with 421: at once, or after the message being received. */
  shutDown(): void {
    this.#shuttingDown = true
    if (this.phase === 'commands') this.#sendReply(421, '4.3.2', 'Server shutting down, try again later')
  }

  /** True while it waits for a command outside of a transaction, and is not being ended. */
  get idle(): boolean {
    return this.phase === 'commands' && !this.closing && !this.#connection.session.envelope?.rcptTo.length
  }

  /** Ends it for another: its place is free at once. */
  giveWay(): void {
    this.#sendReply(421, '4.3.2', 'Too many connections')
    this.onEnded()
    this.onEnded = () => undefined
    this.#socket.destroySoon()
  }

  /** Called when the connection has ended. */
  ended(): void {
    this.#ended = true
    this.#log(this.#pendingReply)
    clearTimeout(this.#sessionTimer)
    clearInterval(this.#pace)
    this.onEnded()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #reply(code: number, data: string | string[] | null | undefined, context: string | false | undefined): void {
    const isDataReply = this.#answering !== null && code !== 354
    if (isDataReply) this.#onDataAnswered(code)
    else this.#commands++
    if (code >= 400 && !this.#isExcused(context)) this.#errors++
    if (this.#overLimit()) return this.#sendReply(421, '4.7.0', 'Too many errors or commands')
    this.#forward(code, data, context)
    if (isDataReply) this.#afterData()
  }

  #onDataAnswered(code: number): void {
    this.phase = 'commands'
    // A message resets the count of commands; only an accepted one resets the errors and the session timeout.
    this.#commands = 0
    if (code !== 250) return
    this.#errors = 0
    this.#sessionTimer.refresh()
  }

  #afterData(): void {
    const closing = this.#answering === 'close'
    this.#answering = null
    if (closing) this.#connection.close()
    else if (this.#shuttingDown) this.shutDown()
  }

  /** True if the client has exceeded its errors or commands. The recipients of a transaction do not count as commands. */
  #overLimit(): boolean {
    const { max_errors, max_commands } = this.#limits()
    if (this.#errors <= max_errors && this.#commands <= max_commands) return false
    return this.#errors > max_errors || this.#commands > max_commands + (this.#connection.session.envelope?.rcptTo.length ?? 0)
  }

  #isExcused(context: string | false | undefined): boolean {
    if (context !== 'TOO_MANY_RECIPIENTS' || this.#overshoot >= overshootAllowance) return false
    this.#overshoot++
    this.#commands--
    return true
  }

  /** Sends a reply of the library, corrected where its code or text would mislead. Our own replies start with an enhanced code. */
  #forward(code: number, data: string | string[] | null | undefined, context: string | false | undefined): void {
    if (typeof data === 'string' && /^[245]\.\d{1,3}\.\d{1,3} /.test(data)) return this.#send(code, data, false)
    if (code === 530) return this.#sendReply(555, '5.5.4', 'Parameter not recognized')
    if (code !== 500) return this.#send(code, data, context)
    if (context === 'AUTH' && this.#requiresTls) return this.#sendReply(530, '5.7.0', 'Must issue a STARTTLS command first')
    this.#sendReply(500, '5.5.2', 'Command not recognized')
    // BDAT is followed by message data (RFC 3030), which must not be run as commands; `context` has its name only if no blank precedes it.
    if (/^\s*BDAT\b/i.test(String(this.#command ?? ''))) this.#connection.close()
  }

  #sendReply(code: number, enhanced: string, text: string): void {
    this.#send(code, `${enhanced} ${text}`, false)
  }

  #send(code: number, data: string | string[] | null | undefined, context: string | false | undefined): void {
    this.#write(code, data, context)
    if (code === 421) this.#isClosing = true
    if (code < 400 || this.#ended) return
    const { error = '' } = this.#connection.session
    if (this.#logRefusal) this.#log(error)
    // a shutdown is not an error of the client
    else if (!this.#shuttingDown) this.onRefused(error, this.#command === null ? null : redactCommand(this.#command))
  }

  #log(reply: string): void {
    const write = this.#logRefusal
    this.#logRefusal = null
    write?.(reply)
  }

  /** Counts each period separately: with an overall average a fast start would allow hours of slow sending. */
  #checkPace(): void {
    if (this.#received < this.#limits().pace.octets) {
      clearInterval(this.#pace)
      this.#sendReply(421, '4.4.2', 'The message is sent too slowly')
    }
    this.#received = 0
  }

  #expire(): void {
    if (this.phase !== 'commands') this.#sessionTimer.refresh()
    else this.#sendReply(421, '4.4.2', 'This session has lasted too long')
  }
}
