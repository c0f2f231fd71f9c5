/* oxlint-disable no-underscore-dangle -- the library's own names */
import { isAscii } from 'node:buffer'
import { TLSSocket } from 'node:tls'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { debugOnly, type Log, loggable } from '../../core/log.ts'
import { connectFailure } from './dial.ts'
import type { ServerConnection } from './mx.ts'
import { readReply, refusal, type Stage } from './smtp-reply.ts'
import { certificateFailure, flawOf, type TlsFailure } from './tls-result.ts'
import { later, never, type Server, type Security, Undelivered } from './undelivered.ts'

/**
 * How much TLS: `clear` none at all; `may` takes what there is and checks nothing; `checked` wants a certificate of the server's name
 * from an authority, and `proved` one that its TLSA records name.
 */
export type TlsLevel = 'clear' | 'may' | 'checked' | 'proved'

/** How a server is to be spoken to. */
export interface SessionOptions {
  /** What we say at EHLO. */
  name: string
  level: TlsLevel
  /** TLS from the first octet (RFC 8314). */
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

/** What the library knows of the other side, and how it writes; its types do not show it. */
interface Inside {
  _supportedExtensions: string[]
  _sendCommand: (this: unknown, command: string, logged?: string) => void
}

/** Octets of one reply, all its lines: more is no reply. */
const largestReply = 64 * 1024

/** Milliseconds that a server may take for what is no work: to greet and for the handshake, and for RSET. */
const greeting = 60_000
const resetting = 10_000

/** One SMTP connection as a client (RFC 5321), from the greeting on. Whatever the other side does, every step ends with the signal. */
export class SmtpClientSession implements Server {
  readonly hostname: string
  readonly address: string
  /** Version and cipher, and whether the certificate was checked; null in the clear. */
  readonly tls: string | null
  readonly security: Security | null
  /** What a check of TLS would have found, whether or not there was one. */
  readonly flaw: TlsFailure | null
  /** Messages that it was used for. */
  messages = 0
  /** Called when the server has gone, or we have closed. */
  onEnd: (() => void) | undefined
  readonly #connection: SMTPConnection

  /** Greets a server; throws Undelivered when that fails, with the step `tls` when the encryption was at fault. */
  static async open(opened: ServerConnection, manner: SessionOptions, signal: AbortSignal, log?: Log): Promise<SmtpClientSession> {
    const { level, implicit, name, login } = manner
    const connection = new SMTPConnection({
      connection: opened.socket,
      host: opened.hostname,
      name,
      secure: implicit,
      ignoreTLS: level === 'clear' && !implicit,
      requireTLS: level === 'checked' || level === 'proved',
      opportunisticTLS: level === 'may',
      tls: { minVersion: 'TLSv1.2', rejectUnauthorized: level === 'checked', servername: opened.hostname },
      greetingTimeout: greeting,
      connectionTimeout: greeting,
      socketTimeout: 300_000,
      socketCloseTimeout: 0,
      maxResponseSize: largestReply,
      ...(log ? loggedDialogue(log, opened) : {}),
    })
    connection.on('error', () => undefined)
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

  private constructor({ hostname, address, verify }: ServerConnection, connection: SMTPConnection, level: TlsLevel) {
    this.hostname = hostname
    this.address = address
    this.#connection = connection
    connection.once('end', () => this.onEnd?.())
    const socket = connection._socket
    this.flaw = flawOf(socket)
    if (!(socket instanceof TLSSocket)) {
      this.tls = null
      this.security = null
      return
    }
    if (level === 'proved') requireProof(socket, verify)
    const verified = level === 'checked' || level === 'proved' || socket.authorized
    this.security = { version: socket.getProtocol() ?? 'unknown', cipher: socket.getCipher().name, verified }
    this.tls = `${this.security.version} ${this.security.cipher}, certificate ${verified ? 'checked' : 'not checked'}`
  }

  /** Whether another message may be sent over it. */
  get alive(): boolean {
    return !this.#connection.destroyed
  }

  /** What the server answered to the message: the 250. Throws Undelivered. */
  async send({ from, to, octets, require_tls }: OutgoingCopy, signal: AbortSignal): Promise<string> {
    this.messages += 1
    const { _supportedExtensions: can } = this.#connection as unknown as Inside
    if (require_tls && !(this.tls !== null && can.includes('REQUIRETLS'))) {
      throw never(`${this.hostname} does not offer REQUIRETLS (RFC 8689)`, '5.7.30', 'require_tls')
    }
    const head = octets.subarray(0, headLength(octets))
    const international = !isPlain(from) || !isPlain(to) || !isAscii(head)
    if (international && !can.includes('SMTPUTF8')) {
      throw never(`${this.hostname} takes no addresses beyond ASCII (SMTPUTF8, RFC 6531)`, '5.6.7')
    }
    // RFC 6152 3: such octets never go where they were not offered, and what is signed is not converted
    if (!isAscii(octets) && !can.includes('8BITMIME')) {
      throw never(`${this.hostname} takes no octets beyond ASCII (8BITMIME, RFC 6152)`, '5.6.3')
    }
    const envelope = {
      from,
      to: [to],
      size: octets.length,
      use8BitMime: !isAscii(octets),
      requireTLSExtensionEnabled: require_tls,
    }
    const asked = international && isPlain(from) && isPlain(to)
    try {
      const restore = asked ? declareInternational(this.#connection) : undefined
      const sent = wait<{ response: string }>(this.#connection, signal, (done) => this.#connection.send(envelope, octets, done))
      const { response } = await sent.finally(restore)
      // the library takes everything that begins with a 2
      if (!/^2\d\d(?:[ -]|$)/.test(response)) throw refusal(response, 'data')
      return response
    } catch (error) {
      if (error instanceof Undelivered || signal.aborted) throw error
      throw sendingFailure(error, this.hostname)
    }
  }

  /** Whether the server is still there and ready for the next message. */
  async ready(signal: AbortSignal): Promise<boolean> {
    if (!this.alive) return false
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(resetting)])
    try {
      await wait<boolean>(this.#connection, timeout, (done) => this.#connection.reset((error, ok) => done(error, ok ?? true)))
      return true
    } catch {
      this.close()
      return false
    }
  }

  /** Says goodbye, and does not wait for an answer longer than a moment. */
  leave(): void {
    if (!this.alive) return
    this.#connection.quit()
    setTimeout(() => this.close(), 2000).unref()
  }

  /** Nothing more is said. */
  close(): void {
    this.#connection.close()
  }

  async #login({ user, password }: { user: string; password: string }, signal: AbortSignal): Promise<void> {
    if (this.tls === null) throw later(`${this.hostname} offers no TLS, and without it nobody logs in`, '4.7.11')
    const method = { user, pass: password }
    await wait<boolean>(this.#connection, signal, (done) => this.#connection.login(method, done)).catch((error: unknown) => {
      if (signal.aborted) throw error
      const said = readReply((error as Failure).response ?? '')
      throw later(`${this.hostname} refused the login: ${said.text || (error as Error).message}`, '4.7.8')
    })
  }
}

/** The answer to one request of the library's; rejects too when the connection ends or the signal aborts, which closes it. */
function wait<Answer>(
  connection: SMTPConnection,
  signal: AbortSignal,
  begin: (done: (error: Error | null, answer?: Answer) => void) => void,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  // after a 421 the library ends the connection first, and then says what was answered
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

/** What the library tells of a failure. */
interface Failure extends Error {
  code?: string
  originalCode?: string
  response?: string
  command?: string
}

function openingFailure(error: unknown, connection: SMTPConnection, level: TlsLevel): Undelivered {
  const { code, response, message } = error as Failure
  const encrypting = connection.upgrading === true || code === 'ETLS'
  if (encrypting || (level !== 'may' && isCertificate(error))) {
    const why = response === undefined ? connectFailure(error) : readReply(response).text
    return tlsFailed(why, response === undefined ? certificateFailure(error) : { type: 'starttls-not-supported', reason: null })
  }
  if (response !== undefined) {
    const answer = refusal(response, 'greeting')
    return answer.answer.smtp_code === null ? later(answer.message, '4.4.2', 'connect') : withStep(answer)
  }
  return later(`it did not greet as a mail server does: ${message.slice(0, 200)}`, '4.4.2', 'connect')
}

/** Who says no before anything was asked says it of itself: another server of the domain may do. */
function withStep({ answer, maxDelay }: Undelivered): Undelivered {
  return new Undelivered(answer, { within: maxDelay, step: 'connect' })
}

function sendingFailure(error: unknown, hostname: string): Undelivered {
  const { code, response, command, message } = error as Failure
  if (code === 'EMESSAGE' && response === undefined && message.startsWith('Message size')) {
    return never(`the message is larger than ${hostname} takes`, '5.3.4')
  }
  if (response !== undefined) return refusal(response, stages[command ?? ''] ?? 'data')
  return later(`the connection was lost before there was an answer: ${message.slice(0, 200)}`, '4.4.2')
}

const stages: Record<string, Stage> = { 'MAIL FROM': 'mail', 'RCPT TO': 'rcpt', DATA: 'data' }

function isCertificate(error: unknown): boolean {
  const { code, originalCode, message } = error as Failure
  return /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|ERR_SSL|ERR_TLS/.test(`${code} ${originalCode}`) || /certificate/i.test(message)
}

function requireProof(socket: TLSSocket, prove: ServerConnection['verify']): void {
  const chain: { raw: Buffer }[] = []
  for (let one = socket.getPeerX509Certificate(); one && chain.length < 10; one = one.issuerCertificate) chain.push(one)
  const [leaf, ...issuers] = chain
  const wrong = leaf && prove ? prove(leaf, issuers) : new Error('it showed no certificate')
  if (!wrong) return
  const why = wrong.message.slice(0, 300)
  throw tlsFailed(why, { type: 'validation-failure', reason: why })
}

function tlsFailed(why: string, tlsFailure: TlsFailure): Undelivered {
  const answer = { outcome: 'deferred' as const, response: `TLS failed: ${why}`, enhanced_code: '4.7.5' }
  return new Undelivered(answer, { step: 'tls', tlsFailure })
}

/** Adds the word that the library only says for addresses in the envelope: names in the header need it too (RFC 6531 3.4). */
function declareInternational(connection: SMTPConnection): () => void {
  const inside = connection as unknown as Inside
  const say = inside._sendCommand
  inside._sendCommand = function send(command, logged) {
    say.call(this, command.startsWith('MAIL FROM:') ? `${command} SMTPUTF8` : command, logged)
  }
  return () => {
    inside._sendCommand = say
  }
}

function headLength(octets: Buffer): number {
  const end = octets.indexOf('\r\n\r\n')
  return end < 0 ? octets.length : end
}

function isPlain(address: string): boolean {
  return isAscii(Buffer.from(address))
}

/** Characters of a command or reply that are logged. */
const maxSaid = 2048

/** Options of the library with which, at debug, each command and reply is logged; it leaves out messages and what it logs in with. */
export function loggedDialogue(log: Log, { hostname: mx, address: ip }: ServerConnection): object {
  if (!log.isLevelEnabled('debug')) return {}
  const logger = debugOnly((said, text = '') => {
    const { tnx } = said as { tnx?: string }
    if (tnx === 'client') log.debug({ mx, ip, command: loggable(text, maxSaid) }, 'SMTP command sent')
    else if (tnx === 'server') log.debug({ mx, ip, reply: loggable(text, maxSaid) }, 'SMTP reply received')
  })
  return { transactionLog: true, logger }
}
