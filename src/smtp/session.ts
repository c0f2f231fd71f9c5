/* oxlint-disable no-underscore-dangle -- the library's own names */
import type { Socket } from 'node:net'
import { redactCommand } from './dialogue-log.ts'
import { feedMessage, type Parser } from './unstuffing.ts'
import type { DeliveryTarget } from './delivery-target.ts'
import type { Refusal } from './replies.ts'

/** What a visit needs of the library's connection; `send` answers one command and `close` ends the session after it. */
export interface Connection {
  send(code: number, data?: string | string[] | null, context?: string | false): void
  close(): void
  /** `error` is the last reply of 400 and above, as it went out. */
  session: { envelope?: { rcptTo: unknown[] }; error?: string | undefined }
  hostNameAppearsAs: string | false
  _parser: Parser | false
  _onCommand(command: string | Buffer, callback?: () => void): void
  /** Set while what comes next is no command but part of an AUTH. */
  _nextHandler: unknown
}

export interface SmtpSessionLimits {
  max_errors: number
  max_commands: number
  /** How long a session may last without a message; a message being received has its own clock. */
  session_timeout: number
  /** How many octets of a message must come within each such time. */
  pace: { octets: number; within: number }
}

/** Recipients beyond the limit that a client may name in one session before each of them counts (Postfix calls it overshoot). */
const overshootAllowance = 1000

/** How long the reply to an oversized message may take to arrive, in milliseconds, before the connection is cut. */
const linger = 1000

/**
 * One client's session: how far it is, what it has spent of our patience, and the one place its replies pass. Every command is answered
 * exactly once, so counting replies counts commands, pipelined ones too, and the last allowed one is the last that runs.
 */
export class SmtpSession {
  readonly id: string
  /** The address as counted by the guard. */
  readonly address: string
  /** Set once the session is under TLS. */
  tls: { version: string; cipher: string } | null = null
  /** Of who has logged in. */
  deliveryTarget: DeliveryTarget | null = null
  failedLogins = 0
  /** Hears of each reply of 400 and above, as it went out, with the command it answers unless that may hold a secret. */
  refused: (reply: string, command: string | null) => void = () => undefined
  /** What is still to be done once the session is under TLS. */
  greet: () => void = () => undefined
  /** `receiving` a message: then only its pace is watched; or `keeping` it: then no clock but the mailroom's runs. */
  phase: 'talking' | 'receiving' | 'keeping' = 'talking'
  #socket: Socket
  readonly #connection: Connection
  readonly #write: Connection['send']
  readonly #limits: () => SmtpSessionLimits
  readonly #life: NodeJS.Timeout
  readonly #privately: boolean
  #commands = 0
  #errors = 0
  #overshoot = 0
  #settling: 'message' | 'hang up' | null = null
  #leaving = false
  #pace: NodeJS.Timeout | undefined
  #received = 0
  #command: string | Buffer | null = null
  #explained: ((reply: string) => void) | null = null
  #explanation = ''
  #over = false
  #closing = false

  /** `privately`: who comes here logs in, and not before TLS. */
  constructor(
    id: string,
    address: string,
    socket: Socket,
    connection: Connection,
    limits: () => SmtpSessionLimits,
    privately: boolean = false,
  ) {
    this.#privately = privately
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
      run(command, callback)
    }
    this.#life = setTimeout(() => this.#expire(), limits().session_timeout)
  }

  get helo(): string {
    return this.#connection.hostNameAppearsAs || ''
  }

  /** Whether it is the box that ends the session, so that the client has not just gone away. */
  get closing(): boolean {
    return this.#closing || this.#leaving
  }

  /** The next refusal is told to `write` in place of `refused`; with `reply` itself when the client is gone before it is sent. */
  explain(reply: string, write: (reply: string) => void): void {
    if (this.#over) return write(reply)
    this.#explained = write
    this.#explanation = reply
  }

  /** The session moved under TLS, to another socket. */
  secured(socket: Socket, tls: { version: string; cipher: string }): void {
    this.#socket = socket
    this.tls = tls
    this.greet()
  }

  /** A message begins. */
  receive(): void {
    this.phase = 'receiving'
    const { _parser: parser } = this.#connection
    if (parser) feedMessage(parser)
    this.#received = 0
    this.#pace = setInterval(() => this.#keepPace(), this.#limits().pace.within)
  }

  /** So many octets of the message have come. */
  received(octets: number): void {
    this.#received += octets
  }

  /** The message is whole; now the client waits for us. */
  keep(): void {
    this.phase = 'keeping'
    clearInterval(this.#pace)
  }

  /** Runs the callback that makes the library answer a message. After `hang up` the session is over, whatever is pipelined behind. */
  settle(then: 'message' | 'hang up', answer: () => void): void {
    this.#settling = then
    answer()
  }

  /** A client that goes on sending when it was told the limit: it hears why, and no more of it is read. */
  cut(refusal: Refusal): void {
    this.#say(refusal.code, refusal.enhanced, refusal.text)
    this.#closing = true
    clearInterval(this.#pace)
    this.#connection.close()
    this.#socket.pause()
    setTimeout(() => this.#socket.destroy(), linger).unref()
  }

  /** Asks the client to go: at once, or after the message it is sending. */
  leave(): void {
    this.#leaving = true
    if (this.phase === 'talking') this.#say(421, '4.3.2', 'Closing down, come back later')
  }

  /** The connection ended. */
  ended(): void {
    this.#over = true
    this.#tell(this.#explanation)
    clearTimeout(this.#life)
    clearInterval(this.#pace)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #reply(code: number, data: string | string[] | null | undefined, context: string | false | undefined): void {
    const settled = this.#settling !== null && code !== 354
    if (settled) this.#settle(code)
    else this.#commands++
    if (code >= 400 && !this.#excused(context)) this.#errors++
    if (this.#worn()) return this.#say(421, '4.7.0', 'Too many errors or commands')
    this.#pass(code, data, context)
    if (settled) this.#afterMessage()
  }

  #settle(code: number): void {
    this.phase = 'talking'
    // A message costs the client more than a command; only a delivered one earns back its errors.
    this.#commands = 0
    if (code !== 250) return
    this.#errors = 0
    this.#life.refresh()
  }

  #afterMessage(): void {
    const hangUp = this.#settling === 'hang up'
    this.#settling = null
    if (hangUp) this.#connection.close()
    else if (this.#leaving) this.leave()
  }

  /** The recipients of a transaction do not count as commands. */
  #worn(): boolean {
    const { max_errors, max_commands } = this.#limits()
    if (this.#errors <= max_errors && this.#commands <= max_commands) return false
    return this.#errors > max_errors || this.#commands > max_commands + (this.#connection.session.envelope?.rcptTo.length ?? 0)
  }

  #excused(context: string | false | undefined): boolean {
    if (context !== 'TOO_MANY_RECIPIENTS' || this.#overshoot >= overshootAllowance) return false
    this.#overshoot++
    this.#commands--
    return true
  }

  /** The library's replies, mended where its code or text would mislead; ours carry their enhanced code already. */
  #pass(code: number, data: string | string[] | null | undefined, context: string | false | undefined): void {
    if (typeof data === 'string' && /^[245]\.\d{1,3}\.\d{1,3} /.test(data)) return this.#send(code, data, false)
    if (code === 530) return this.#say(555, '5.5.4', 'Parameter not recognized')
    if (code !== 500) return this.#send(code, data, context)
    if (context === 'AUTH' && this.#privately) return this.#say(530, '5.7.0', 'Must issue a STARTTLS command first')
    this.#say(500, '5.5.2', 'Command not recognized')
    // What follows BDAT is a message (RFC 3030), not commands: nothing behind it may run.
    if (context === 'BDAT') this.#connection.close()
  }

  #say(code: number, enhanced: string, text: string): void {
    this.#send(code, `${enhanced} ${text}`, false)
  }

  #send(code: number, data: string | string[] | null | undefined, context: string | false | undefined): void {
    this.#write(code, data, context)
    if (code === 421) this.#closing = true
    if (code < 400 || this.#over) return
    const { error = '' } = this.#connection.session
    if (this.#explained) this.#tell(error)
    // that we go is no fault of the client's
    else if (!this.#leaving) this.refused(error, this.#command === null ? null : redactCommand(this.#command))
  }

  #tell(reply: string): void {
    const write = this.#explained
    this.#explained = null
    write?.(reply)
  }

  /** Counted anew each time: who sent much at first could hold it for hours if the average of all were asked. */
  #keepPace(): void {
    if (this.#received < this.#limits().pace.octets) {
      clearInterval(this.#pace)
      this.#say(421, '4.4.2', 'The message comes too slowly')
    }
    this.#received = 0
  }

  #expire(): void {
    if (this.phase !== 'talking') this.#life.refresh()
    else this.#say(421, '4.4.2', 'This session has lasted too long')
  }
}
