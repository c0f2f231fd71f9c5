import type { Readable } from 'node:stream'
import type { Log } from '../core/log.ts'
import { release } from '../core/memory.ts'
import type { ConnectionLimits } from '../net/connection-limiter.ts'
import { MemoryBudget } from './memory-budget.ts'
import { MessageOctets } from './data.ts'
import { type ListenerMetrics, SessionLog, replyText } from './session-log.ts'
import { deliveredBefore, headerLength, receivedHops } from './trace.ts'
import { senderOf } from './paths.ts'
import type { MessageFindings, DeliveryTarget } from './delivery-target.ts'
import { type Profile, receiving, submitting } from './profile.ts'
import type { Envelope } from '../mail/model.ts'
import { isLocalError, Refusal, refusalForFlaw, replyError, type ReplyError, withTimeout } from './replies.ts'
import { headerSummary } from '../message/header-only.ts'
import type { SmtpSession } from './session.ts'

export interface TransactionLimits extends ConnectionLimits {
  /** The largest message in bytes, without its final dot. */
  size: number
  /** Bytes of all messages held in memory at once that are not small; at least twice `size`. */
  max_memory: number
  /** Timeout of the delivery target for one answer, in milliseconds. */
  data_timeout: number
  /** Received fields above this number mean a mail loop. */
  max_received: number
}

/** The state that several transaction handlers may share. */
export interface TransactionOptions {
  budget?: MemoryBudget
  sessionLog?: SessionLog
  metrics?: ListenerMetrics
}

/** A path of a MAIL or RCPT command with its parameters, as smtp-server reads it. */
interface Path {
  address: string
  args: Record<string, string | true> | false
  /** The account of the recipient, from the delivery target. */
  account?: string
}

/** The session object of smtp-server: the client and its transaction. */
interface Session {
  id: string
  remoteAddress: string
  hostNameAppearsAs: string
  openingCommand: string
  transaction: number
  envelope: {
    mailFrom: Path | false
    rcptTo: Path[]
    smtpUtf8?: boolean | undefined
    bodyType?: string | undefined
    requireTLS?: boolean | undefined
  }
}

type Note = (found: Partial<MessageFindings>) => void

type Answer = (error?: Error | null, text?: string) => void

/** How many bytes a message may exceed `size` before the connection is closed, so that a client just above it gets a proper reply. */
const sizeTolerance = 65_536

/** Handles MAIL, RCPT and DATA: checks their form, and passes them to the delivery target. */
export class TransactionHandler {
  readonly #budget: MemoryBudget
  readonly #counts = { refused_recipients: 0, refused_messages: 0, failed_messages: 0, messages: 0, octets: 0 }
  readonly #limits: () => TransactionLimits
  readonly #deliveryTarget: DeliveryTarget | null
  readonly #profile: Profile
  readonly #log: Log
  readonly sessionLog: SessionLog

  /** Without a delivery target, mail is accepted only from authenticated clients, for the target of their session. */
  constructor(
    limits: () => TransactionLimits,
    deliveryTarget: DeliveryTarget | null,
    log: Log,
    { budget, metrics, sessionLog }: TransactionOptions = {},
  ) {
    this.#limits = limits
    this.#budget = budget ?? new MemoryBudget(() => Math.max(limits().max_memory, 2 * limits().size), limits)
    this.#deliveryTarget = deliveryTarget
    this.#profile = deliveryTarget ? receiving : submitting
    this.#log = log
    this.sessionLog = sessionLog ?? new SessionLog(log, metrics)
  }

  /** Counts since the start. `octets_held` is the current memory use. */
  get stats() {
    return { ...this.#counts, octets_held: this.#budget.used }
  }

  /** The memory budget of all messages being received, to be shared with other receivers. */
  get budget(): MemoryBudget {
    return this.#budget
  }

  /** MAIL: null when the sender is accepted, else the error to reply with. Never rejects. Normalizes the path. */
  async sender(smtpSession: SmtpSession | undefined, path: Path, session: Session): Promise<Error | null> {
    try {
      const deliveryTarget = this.#targetFor(smtpSession)
      checkParameters(path, this.#profile.parameters)
      const { envelope } = session
      // Set again: the library keeps the parameters of a refused MAIL command.
      envelope.smtpUtf8 = parameter(path, 'SMTPUTF8') === true
      envelope.bodyType = String(parameter(path, 'BODY') ?? '7bit').toLowerCase()
      envelope.requireTLS = parameter(path, 'REQUIRETLS') === true
      path.address = senderOf(path.address, envelope.smtpUtf8)
      if (deliveryTarget.checkSender) await withTimeout(this.#limits().data_timeout, deliveryTarget.checkSender(path.address))
      return null
    } catch (error) {
      const refused = this.#reply(error, session.id, 'MAIL')
      this.sessionLog.refused('sender', refused)
      const { remoteAddress: ip, hostNameAppearsAs: helo } = session
      const client = { session: session.id, ip, helo, tls: smtpSession?.tls ?? null }
      smtpSession?.logNextRefusal(replyText(refused), (reply) => this.sessionLog.sender(client, path.address, reply))
      return refused
    }
  }

  /** RCPT: null when the delivery target accepts the recipient, else the error to reply with. Never rejects. Normalizes the path. */
  async recipient(smtpSession: SmtpSession | undefined, path: Path, session: Session): Promise<Error | null> {
    try {
      checkParameters(path, [])
      const mailbox = this.#profile.recipientOf(path.address, session.envelope.smtpUtf8 ?? false)
      path.account = await withTimeout(
        this.#limits().data_timeout,
        this.#targetFor(smtpSession).checkRecipient(mailbox, declaredSize(session), envelopeOf(smtpSession, session).mail_from),
      )
      path.address = mailbox
      return null
    } catch (error) {
      this.#counts.refused_recipients++
      const refused = this.#reply(error, session.id, 'RCPT')
      const envelope = envelopeOf(smtpSession, session)
      this.sessionLog.refused('recipient', refused)
      smtpSession?.logNextRefusal(replyText(refused), (reply) => this.sessionLog.recipient(envelope, path.address, reply))
      return refused
    }
  }

  /** DATA: reads the whole message, has it stored, and then answers. */
  message(smtpSession: SmtpSession, stream: Readable, session: Session, answer: Answer): void {
    const { size } = this.#limits()
    const octets = new MessageOctets(size, this.#budget.share(this.#senderOf(smtpSession, session)))
    smtpSession.beginData()
    stream.on('data', (chunk: Buffer) => {
      octets.add(chunk)
      smtpSession.countData(chunk.length)
      if (octets.size <= size + sizeTolerance) return
      stream.removeAllListeners('data')
      octets.drop()
      this.#counts.refused_messages++
      const refusal = refusalForFlaw('size')
      const refused = replyError(refusal)
      const envelope = envelopeOf(smtpSession, session)
      const cut = { id: null, size: octets.size, findings: headerSummary(octets.head), ms: 0 }
      this.sessionLog.refused('message', refused)
      smtpSession.logNextRefusal(replyText(refused), (reply) => this.sessionLog.message(envelope, { ...cut, reply }))
      smtpSession.abortData(refusal)
    })
    // The client disconnected during the message.
    stream.on('error', () => {
      if (!smtpSession.closing) this.sessionLog.lost(envelopeOf(smtpSession, session), octets.size)
      octets.drop()
    })
    stream.on('end', () => {
      smtpSession.endData()
      this.#answer(smtpSession, session, octets, answer).catch((error: unknown) => {
        this.#log.error({ err: error, session: session.id }, 'SMTP session failed')
      })
    })
  }

  /** The sender that the memory of a message counts for: the account of a logged-in client, the address of any other. */
  #senderOf({ address }: SmtpSession, { envelope }: Session): string {
    return this.#deliveryTarget ? address : `account ${envelope.rcptTo[0]?.account ?? ''}`
  }

  async #answer(smtpSession: SmtpSession, session: Session, octets: MessageOctets, answer: Answer): Promise<void> {
    // The library resets its transaction when it answers.
    const envelope = envelopeOf(smtpSession, session)
    const account = session.envelope.rcptTo[0]?.account ?? ''
    const began = performance.now()
    const findings: Partial<MessageFindings> = {}
    const note = (more: Partial<MessageFindings>): void => void Object.assign(findings, more)
    const { size } = octets
    try {
      const id = await this.#store(this.#targetFor(smtpSession), envelope, octets, note, account)
      this.#counts.messages++
      this.#counts.octets += size
      const text = `2.0.0 Ok: queued as ${id}`
      this.sessionLog.message(envelope, { id, size, findings, reply: `250 ${text}`, ms: performance.now() - began })
      smtpSession.answerData('message', () => answer(null, text))
    } catch (error) {
      this.#counts[isLocalError(this.#profile.refusalFor(error)) ? 'failed_messages' : 'refused_messages']++
      const reply = this.#reply(error, session.id, 'DATA')
      const ending = { id: null, size, findings: { ...headerSummary(octets.head), ...findings }, ms: performance.now() - began }
      this.sessionLog.refused('message', reply)
      smtpSession.logNextRefusal(replyText(reply), (sent) => this.sessionLog.message(envelope, { ...ending, reply: sent }))
      // Text after such a message may be smuggled commands.
      smtpSession.answerData(octets.flaw === 'bare' ? 'close' : 'message', () => answer(reply))
    }
  }

  #targetFor(smtpSession: SmtpSession | undefined): DeliveryTarget {
    const deliveryTarget = this.#deliveryTarget ?? smtpSession?.deliveryTarget
    if (deliveryTarget) return deliveryTarget
    throw new Refusal(530, '5.7.0', smtpSession?.tls ? 'Authentication required' : 'Must issue a STARTTLS command first')
  }

  #store(
    deliveryTarget: DeliveryTarget,
    envelope: Envelope,
    octets: MessageOctets,
    note: Note,
    account: string,
  ): Promise<string> {
    const work = this.#deliver(deliveryTarget, envelope, octets, note, account)
    // The message is released after the work, not the answer: work that exceeds the timeout still uses it.
    const end = (): void => octets.drop()
    work.then(end, end)
    return withTimeout(this.#limits().data_timeout, work)
  }

  async #deliver(
    deliveryTarget: DeliveryTarget,
    envelope: Envelope,
    octets: MessageOctets,
    note: Note,
    account: string,
  ): Promise<string> {
    if (octets.flaw) throw refusalForFlaw(octets.flaw)
    const raw = octets.whole()
    const flaw = this.#flawOf(raw, envelope)
    // mail that will be examined gets its findings there
    if (flaw || !this.#profile.checksDeliveredTo) note(headerSummary(raw))
    if (flaw) throw flaw
    const id = await deliveryTarget.deliver(envelope, raw, note, account)
    release(raw)
    return id
  }

  #flawOf(raw: Buffer, { recipients }: Envelope): Refusal | null {
    const { max_received } = this.#limits()
    if (headerLength(raw) === Infinity) return new Refusal(552, '5.3.4', 'The header of the message is too large')
    if (receivedHops(raw) > max_received) return new Refusal(554, '5.4.6', 'Too many hops, this looks like a mail loop')
    if (!this.#profile.checksDeliveredTo || !deliveredBefore(raw, recipients)) return null
    return new Refusal(554, '5.4.6', 'Already delivered here, this looks like a mail loop')
  }

  #reply(error: unknown, session: string, command: 'MAIL' | 'RCPT' | 'DATA'): ReplyError {
    const refusal = this.#profile.refusalFor(error)
    if (isLocalError(refusal)) {
      if (command === 'DATA') this.#log.error({ err: error, session }, 'message could not be stored')
      else this.#log.error({ err: error, session, command }, 'SMTP command failed')
    }
    return replyError(refusal)
  }
}

function envelopeOf(smtpSession: SmtpSession | undefined, session: Session): Envelope {
  const { mailFrom, rcptTo, smtpUtf8, requireTLS } = session.envelope
  return {
    remote_address: session.remoteAddress,
    helo: session.hostNameAppearsAs,
    mail_from: mailFrom === false ? '' : mailFrom.address,
    recipients: [...new Set(rcptTo.map((path) => path.address))],
    smtputf8: smtpUtf8 ?? false,
    esmtp: session.openingCommand === 'EHLO',
    tls: smtpSession?.tls ?? null,
    session: `${session.id}.${session.transaction}`,
    ...(requireTLS ? { require_tls: true } : {}),
  }
}

function parameter(path: Path, name: string): string | true | undefined {
  return path.args === false ? undefined : path.args[name]
}

/** The SIZE parameter of MAIL (RFC 1870); 0 without one. */
function declaredSize({ envelope: { mailFrom } }: Session): number {
  return mailFrom === false ? 0 : Number(parameter(mailFrom, 'SIZE') ?? 0) || 0
}

function checkParameters(path: Path, known: readonly string[]): void {
  if (path.args === false) return
  const unknown = Object.keys(path.args).some((name) => !known.includes(name))
  if (unknown) throw new Refusal(555, '5.5.4', 'Parameter not recognized')
}
