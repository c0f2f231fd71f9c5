import { type Log, loggable } from '../core/log.ts'
import type { CheckResults, MessageFindings } from './delivery-target.ts'
import type { Envelope } from '../mail/model.ts'
import { RepeatedRefusals } from './repeated-refusals.ts'
import type { ReplyError } from './replies.ts'
import { enhancedCodeIn } from '../message/reports/field-groups.ts'

/** The metrics that one listener updates. */
export interface ListenerMetrics {
  /** Reply code and text as sent to the client. The text starts with the enhanced code. */
  refused(stage: Stage, code: number, text: string): void
  /** The results of the checks of one message. */
  checked(results: CheckResults): void
  /** Seconds from the end of DATA to the reply. */
  answered(seconds: number): void
  /** A session is under TLS, or a handshake failed. */
  secured(version: string | null): void
}

/** The stage of a session at which a refusal was sent. */
export type Stage = 'connection' | 'sender' | 'recipient' | 'message'

/** How one message ended. */
interface MessageResult {
  /** Its queue id; null when it was not accepted. */
  id: string | null
  size: number
  /** The properties known so far. */
  findings: Partial<MessageFindings>
  /** The reply as sent to the client: code, enhanced code and text. */
  reply: string
  /** From the end of DATA to the reply, in milliseconds. */
  ms: number
}

/** The client of a log line. */
export interface Client {
  /** Id of the connection, or of the transaction. */
  session: string
  ip: string
  helo?: string
  tls?: { version: string; cipher: string } | null
}

/** Characters that are logged of an address or name, of a reply or command, and of all recipients together. */
const maxName = 320
const maxText = 512
const maxRecipientsText = 16_384

/** The mail log: who sent what to whom, and our replies. It holds addresses and sizes, and no message content. */
export class SessionLog {
  readonly #log: Log
  readonly #metrics: ListenerMetrics | undefined
  readonly #repeated: RepeatedRefusals

  constructor(log: Log, metrics?: ListenerMetrics) {
    this.#metrics = metrics
    // none of these fields can hold a secret, and redaction would cost more than the line itself
    this.#log = log.child({}, { redact: [] })
    this.#repeated = new RepeatedRefusals((unlogged) => this.#log.info(unlogged, 'further rejections of this kind'))
  }

  /** Reports the refusals that were counted instead of logged. */
  flush(): void {
    this.#repeated.flush()
  }

  /** Logs a message that was received whole, or was aborted by us. */
  message(envelope: Envelope, { id, size, findings, reply, ms }: MessageResult): void {
    const { results, message_id, from_domain, email_ids } = findings
    if (results) this.#metrics?.checked(results)
    // an aborted message has no end to measure from
    if (ms > 0) this.#metrics?.answered(ms / 1000)
    const to = recipientsOf(envelope)
    const line = {
      ...clientFields(clientOf(envelope)),
      queue_id: id,
      message_id: message_id ? loggable(message_id, maxText) : null,
      from: loggable(envelope.mail_from, maxName),
      from_domain: from_domain ? loggable(from_domain, maxName) : null,
      to,
      ...(to.length < envelope.recipients.length ? { to_count: envelope.recipients.length } : {}),
      size,
      ...results,
      ...(email_ids?.length ? { email_ids } : {}),
      result: id === null ? 'refused' : 'accepted',
      ...replyFields(reply),
      ms: Math.round(ms),
    }
    this.#log.info(line, id === null ? 'message refused' : 'message taken')
  }

  /** Logs a message whose client disconnected before its end. `size` is what had been received. */
  lost(envelope: Envelope, size: number): void {
    if (!this.#repeated.admits(envelope.remote_address, 'connection lost')) return
    const to = recipientsOf(envelope)
    const line = { ...clientFields(clientOf(envelope)), from: loggable(envelope.mail_from, maxName), to, size, result: 'lost' }
    this.#log.info(line, 'connection lost during DATA')
  }

  /** Logs a refused recipient, with the address as the client sent it. */
  recipient(envelope: Envelope, address: string, reply: string): void {
    if (!this.#admits('recipient', envelope.remote_address, reply)) return
    const names = { from: loggable(envelope.mail_from, maxName), to: loggable(address, maxName) }
    this.#log.info({ ...clientFields(clientOf(envelope)), ...names, ...replyFields(reply) }, 'recipient refused')
  }

  /** Logs a refused sender, with the address as the client sent it. */
  sender(client: Client, address: string, reply: string): void {
    if (!this.#admits('sender', client.ip, reply)) return
    this.#log.info({ ...clientFields(client), from: loggable(address, maxName), ...replyFields(reply) }, 'sender refused')
  }

  /** Logs any other refused command. A 421 ends the session. */
  command(client: Client, command: string | null, reply: string): void {
    if (!this.#admits('command', client.ip, reply)) return
    const written = command === null ? null : loggable(command, maxText)
    const sender = /^MAIL FROM:\s*<([^>]*)>/i.exec(written ?? '')?.[1]
    const names = { command: written, ...(sender === undefined ? {} : { from: sender.slice(0, maxName) }) }
    this.#log.info(
      { ...clientFields(client), ...names, ...replyFields(reply) },
      reply.startsWith('421') ? 'session closed' : 'command refused',
    )
  }

  /** Logs a refused connection. */
  connection(ip: string, reply: string): void {
    this.count('connection', reply)
    if (this.#admits('connection', ip, reply)) this.#log.warn({ ip, ...replyFields(reply) }, 'connection refused')
  }

  /** Logs a failed TLS handshake. `why` is from the TLS library. */
  handshake(client: Client, why: string): void {
    if (!this.#repeated.admits(client.ip, 'TLS handshake')) return
    this.#log.info({ ...clientFields(client), reason: loggable(why, maxText) }, 'TLS handshake failed')
  }

  /** Logs a failed login. `identity` is null unless the user name is known. */
  login(client: Client, { identity, why }: { identity: string | null; why: string }, reply: string): void {
    if (!this.#admits('login', client.ip, reply)) return
    this.#log.warn({ ...clientFields(client), identity, why, ...replyFields(reply) }, 'login failed')
  }

  /** Logs a login that was blocked, as too many from that network failed. */
  blocked(client: Client, reply: string): void {
    if (!this.#admits('login', client.ip, reply)) return
    this.#log.warn({ ...clientFields(client), ...replyFields(reply) }, 'login not tried: too many failed from this network')
  }

  /** Counts a refusal for the metrics. */
  refused(stage: Stage, { responseCode, message }: ReplyError): void {
    this.#metrics?.refused(stage, responseCode, message)
  }

  count(stage: Stage, reply: string): void {
    this.#metrics?.refused(stage, Number(reply.slice(0, 3)), reply.slice(4))
  }

  #admits(stage: string, ip: string, reply: string): boolean {
    return this.#repeated.admits(ip, `${stage} ${reply.slice(0, 3)} ${enhancedCodeIn(reply) ?? ''}`.trimEnd())
  }
}

/** A reply as sent to the client. */
export function replyText({ responseCode, message }: ReplyError): string {
  return `${responseCode} ${message}`
}

function replyFields(reply: string): { code: number; enhanced_code: string | null; reply: string } {
  return { code: Number(reply.slice(0, 3)), enhanced_code: enhancedCodeIn(reply), reply: loggable(reply, maxText) }
}

function clientOf({ session, remote_address, helo, tls }: Envelope): Client {
  return { session, ip: remote_address, helo, tls }
}

function clientFields({ session, ip, helo, tls }: Client): object {
  return {
    session,
    ip,
    ...(helo ? { helo: loggable(helo, maxName) } : {}),
    tls: tls?.version ?? null,
    ...(tls ? { cipher: tls.cipher } : {}),
  }
}

/** The recipients that fit into one log line. */
function recipientsOf({ recipients }: Envelope): string[] {
  let remaining = maxRecipientsText
  const found: string[] = []
  for (const recipient of recipients) {
    const address = loggable(recipient, maxName)
    remaining -= address.length
    if (remaining < 0) break
    found.push(address)
  }
  return found
}
