/* oxlint-disable no-underscore-dangle -- the library's own names */
import { isAscii } from 'node:buffer'
import { Readable } from 'node:stream'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { debugOnly, type Log, loggable } from '../../core/log.ts'
import { networkBarred } from '../../net/handshake.ts'
import { secureStream, type SecureStream } from '../../net/secure-stream.ts'
import { declareInternational, extensionsOf, largestReply, limitReplies, secureWith } from './connection-internals.ts'
import { connectFailure } from './dial.ts'
import type { ServerConnection } from './mx.ts'
import { readReply, failureOf, type Stage } from './smtp-reply.ts'
import { certificateFailure, flawOf, type TlsFailure } from './tls-result.ts'
import { later, never, type Server, type Security, Undelivered } from './undelivered.ts'

/**
 * The TLS level: `clear` without TLS; `opportunistic` if offered, without checks; `required` without checks too; `checked` requires a certificate
 * for the server name from a public CA, and `dane` one that matches its TLSA records.
 */
export type TlsLevel = 'clear' | 'opportunistic' | 'required' | 'checked' | 'dane'

export interface SessionOptions {
  /** Our name in EHLO. */
  name: string
  level: TlsLevel
  /** Implicit TLS (RFC 8314). */
  implicit: boolean
  login?: { user: string; password: string } | undefined
}

/** One message for one recipient. */
export interface OutgoingCopy {
  from: string
  to: string
  octets: Buffer
  require_tls: boolean
}

/** Bytes of a message that are dot-stuffed and written at a time. */
const sliceSize = 64 * 1024

/** Timeouts in milliseconds for the greeting and the handshake, and for RSET. */
const greeting = 60_000
const resetting = 10_000

/** One SMTP connection as a client (RFC 5321), from the greeting on. Every step ends when the signal aborts. */
export class SmtpClientSession implements Server {
  readonly hostname: string
  readonly address: string
  /** Version and cipher, and whether the certificate was checked; null in the clear. */
  readonly tls: string | null
  readonly security: Security | null
  /** The error that a TLS check finds, whether or not it was required. */
  readonly flaw: TlsFailure | null
  /** Number of messages sent. */
  messages = 0
  /** Called when the connection has ended. */
  onEnd: (() => void) | undefined
  readonly #connection: SMTPConnection

  /** Opens a session; throws Undelivered when that fails, with the step `tls` when TLS failed. */
  static async open(
    opened: ServerConnection,
    options: SessionOptions,
    signal: AbortSignal,
    log?: Log,
  ): Promise<SmtpClientSession> {
    const { level, implicit, name, login } = options
    const connection = new SMTPConnection({
      connection: opened.socket,
      host: opened.hostname,
      name,
      secure: implicit,
      ignoreTLS: level === 'clear' && !implicit,
      requireTLS: level !== 'clear' && level !== 'opportunistic',
      opportunisticTLS: level === 'opportunistic',
      greetingTimeout: greeting,
      connectionTimeout: greeting,
      socketTimeout: 300_000,
      socketCloseTimeout: 0,
      maxResponseSize: largestReply,
      ...(log ? loggedDialogue(log, opened) : {}),
    })
    connection.on('error', () => undefined)
    limitReplies(connection)
    const { hostname, domain, tlsa } = opened
    secureWith(connection, (socket) => secureStream(socket, { hostname, domain, verify: level === 'checked', tlsa }))
    try {
      await wait<void>(connection, signal, (done) => connection.connect((error) => done(error ?? null)))
      const session = new SmtpClientSession(opened, connection, level)
      if (login) await session.#login(login, signal)
      return session
    } catch (error) {
      connection.close()
      opened.socket.destroy()
      throw error instanceof Undelivered || signal.aborted ? error : openingFailure(error, connection, level)
    }
  }

  private constructor({ hostname, address }: ServerConnection, connection: SMTPConnection, level: TlsLevel) {
    this.hostname = hostname
    this.address = address
    this.#connection = connection
    connection.once('end', () => this.onEnd?.())
    const { facts } = (connection._socket || {}) as Partial<SecureStream>
    this.flaw = flawOf(facts)
    if (!facts) {
      this.tls = null
      this.security = null
      return
    }
    const { version, cipher, daneFailure } = facts
    if (daneFailure !== null) throw tlsFailed(daneFailure, { type: 'validation-failure', reason: daneFailure })
    const verified = level === 'checked' || level === 'dane' || facts.authorized
    this.security = { version, cipher, verified }
    this.tls = `${version} ${cipher}, certificate ${verified ? 'checked' : 'not checked'}`
  }

  /** True if the connection is open. */
  get alive(): boolean {
    return !this.#connection.destroyed
  }

  /** Sends a message; returns the 250 reply. Throws Undelivered. */
  async send({ from, to, octets, require_tls }: OutgoingCopy, signal: AbortSignal): Promise<string> {
    this.messages += 1
    const can = extensionsOf(this.#connection)
    if (require_tls && !(this.tls !== null && can.includes('REQUIRETLS'))) {
      throw never(`${this.hostname} does not offer REQUIRETLS (RFC 8689)`, '5.7.30', 'require_tls')
    }
    const head = octets.subarray(0, headLength(octets))
    const international = !isPlain(from) || !isPlain(to) || !isAscii(head)
    if (international && !can.includes('SMTPUTF8')) {
      throw never(`${this.hostname} does not accept non-ASCII addresses (SMTPUTF8, RFC 6531)`, '5.6.7')
    }
    // RFC 6152 3: 8-bit data is sent only to servers that offer it, and signed content is not converted
    if (!isAscii(octets) && !can.includes('8BITMIME')) {
      throw never(`${this.hostname} does not accept 8-bit data (8BITMIME, RFC 6152)`, '5.6.3')
    }
    const envelope = {
      from,
      to: [to],
      size: octets.length,
      use8BitMime: !isAscii(octets),
      requireTLSExtensionEnabled: require_tls,
    }
    const asked = international && isPlain(from) && isPlain(to)
    const message = octets.length > sliceSize ? Readable.from(slicesOf(octets), { objectMode: false }) : octets
    /** True if the server replied to a message that is still being written. */
    const isEarly = (): boolean => message instanceof Readable && !message.readableEnded && !message.destroyed
    try {
      const restore = asked ? declareInternational(this.#connection) : undefined
      const sent = wait<{ response: string }>(this.#connection, signal, (done) => this.#connection.send(envelope, message, done))
      const { response } = await sent.finally(restore)
      if (isEarly()) throw later(`${this.hostname} replied before the end of the message: ${readReply(response).text}`, '4.5.0')
      // the library accepts everything that begins with a 2
      if (!/^2\d\d(?:[ -]|$)/.test(response)) throw failureOf(response, 'data')
      return response
    } catch (error) {
      // the rest would be taken for commands
      if (isEarly()) this.close()
      if (error instanceof Undelivered || signal.aborted) throw error
      throw sendingFailure(error, this.hostname)
    }
  }

  /** Tests by RSET whether the server is ready for the next message. */
  async ready(signal: AbortSignal): Promise<boolean> {
    if (!this.alive) return false
    const timer = setTimeout(() => this.close(), resetting)
    try {
      await wait<boolean>(this.#connection, signal, (done) => this.#connection.reset((error, ok) => done(error, ok ?? true)))
      return true
    } catch {
      this.close()
      return false
    } finally {
      clearTimeout(timer)
    }
  }

  /** Sends QUIT and closes the connection after 2 s at most. */
  leave(): void {
    if (!this.alive) return
    this.#connection.quit()
    setTimeout(() => this.close(), 2000).unref()
  }

  /** Closes the connection at once. */
  close(): void {
    this.#connection.close()
  }

  async #login({ user, password }: { user: string; password: string }, signal: AbortSignal): Promise<void> {
    if (this.tls === null) throw later(`${this.hostname} offers no TLS, which authentication requires`, '4.7.11')
    const method = { user, pass: password }
    await wait<boolean>(this.#connection, signal, (done) => this.#connection.login(method, done)).catch((error: unknown) => {
      if (signal.aborted) throw error
      const said = readReply((error as Failure).response ?? '')
      throw later(`${this.hostname} refused the login: ${said.text || (error as Error).message}`, '4.7.8')
    })
  }
}

/** Awaits a callback of the library; rejects when the connection ends or the signal aborts, which closes it. */
function wait<Answer>(
  connection: SMTPConnection,
  signal: AbortSignal,
  begin: (done: (error: Error | null, answer?: Answer) => void) => void,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  // after a 421 the library first ends the connection and then reports the reply
  const ended = (): void => void setImmediate(() => reject(new Error('Connection closed')))
  const abort = (): void => {
    reject(signal.reason as Error)
    connection.close()
  }
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  connection.on('error', reject)
  connection.on('end', ended)
  if (!signal.aborted) begin((error, answer) => (error ? reject(error) : resolve(answer as Answer)))
  return promise.finally(() => {
    signal.removeEventListener('abort', abort)
    connection.off('error', reject)
    connection.off('end', ended)
  })
}

/** An error of the library. */
interface Failure extends Error {
  code?: string
  originalCode?: string
  response?: string
  command?: string
}

function openingFailure(error: unknown, connection: SMTPConnection, level: TlsLevel): Undelivered {
  const { code, originalCode, response, message } = error as Failure
  // not a failure of its TLS, after which it might be sent mail in the clear
  if (originalCode === networkBarred) return later(message, '4.7.5', 'connect')
  const encrypting = connection.upgrading === true || code === 'ETLS'
  if (encrypting || (level !== 'opportunistic' && isCertificate(error))) {
    const why = response === undefined ? connectFailure(error) : readReply(response).text
    return tlsFailed(why, response === undefined ? certificateFailure(error) : { type: 'starttls-not-supported', reason: null })
  }
  if (response !== undefined) {
    const answer = failureOf(response, 'greeting')
    return answer.answer.smtp_code === null ? later(answer.message, '4.4.2', 'connect') : ofThisServer(answer)
  }
  return later(`it did not send a valid SMTP greeting: ${message.slice(0, 200)}`, '4.4.2', 'connect')
}

/** A refusal in the greeting concerns only this server: another one of the domain may accept. */
function ofThisServer({ answer, maxDelay }: Undelivered): Undelivered {
  return new Undelivered(answer, { maxDelay, step: 'connect' })
}

function sendingFailure(error: unknown, hostname: string): Undelivered {
  const { code, response, command, message } = error as Failure
  if (code === 'EMESSAGE' && response === undefined && message.startsWith('Message size')) {
    return never(`the message is larger than ${hostname} accepts`, '5.3.4')
  }
  if (response !== undefined) return failureOf(response, stages[command ?? ''] ?? 'data')
  return later(`the connection was lost before a reply: ${message.slice(0, 200)}`, '4.4.2')
}

const stages: Record<string, Stage> = { 'MAIL FROM': 'mail', 'RCPT TO': 'rcpt', DATA: 'data' }

function isCertificate(error: unknown): boolean {
  const { code, originalCode, message } = error as Failure
  return /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|ERR_SSL|ERR_TLS/.test(`${code} ${originalCode}`) || /certificate/i.test(message)
}

function tlsFailed(why: string, tlsFailure: TlsFailure): Undelivered {
  const answer = { outcome: 'deferred' as const, response: `TLS failed: ${why}`, enhanced_code: '4.7.5' }
  return new Undelivered(answer, { step: 'tls', tlsFailure })
}

function* slicesOf(octets: Buffer): Generator<Buffer> {
  for (let at = 0; at < octets.length; at += sliceSize) yield octets.subarray(at, at + sliceSize)
}

function headLength(octets: Buffer): number {
  const end = octets.indexOf('\r\n\r\n')
  return end < 0 ? octets.length : end
}

function isPlain(address: string): boolean {
  return isAscii(Buffer.from(address))
}

/** Characters of a command or reply that are logged. */
const maxLogged = 2048

/** Options of the library with which, at debug, each command and reply is logged; it leaves out messages and credentials. */
function loggedDialogue(log: Log, { hostname: mx, address: ip }: ServerConnection): object {
  if (!log.isLevelEnabled('debug')) return {}
  const logger = debugOnly((said, text = '') => {
    const { tnx } = said as { tnx?: string }
    if (tnx === 'client') log.debug({ mx, ip, command: loggable(text, maxLogged) }, 'SMTP command sent')
    else if (tnx === 'server') log.debug({ mx, ip, reply: loggable(text, maxLogged) }, 'SMTP reply received')
  })
  return { transactionLog: true, logger }
}
