import { type Log, loggable } from '../core/log.ts'
import type { ListenerMetrics, Stage } from './counters.ts'
import type { MessageFindings } from './delivery-target.ts'
import type { Envelope } from '../mail/model.ts'
import { RepeatedRefusals } from './repeated-refusals.ts'
import type { ReplyError } from './replies.ts'
import { enhancedCodeIn } from '../message/reports/field-groups.ts'

/** How one message ended. */
export interface Ending {
  /** Its id at the mailroom; null when it was not kept. */
  id: string | null
  size: number
  /** What is known of it, as far as it was looked at. */
  found: Partial<MessageFindings>
  /** As the client heard it: code, enhanced code and text. */
  reply: string
  /** From the end of DATA to the reply, in milliseconds. */
  ms: number
}

/** Who was refused. */
export interface Client {
  /** Of the connection, or of the transaction. */
  session: string
  ip: string
  helo?: string
  tls?: { version: string; cipher: string } | null
}

/** Characters of what a client writes that are logged: of an address or name, of a reply or command; and of all recipients together. */
const maxName = 320
const maxText = 512
const maxRecipients = 16_384

/** The mail log: who sent what to whom, and what we said. Addresses and figures, nothing of the messages themselves. */
export class SessionLog {
  readonly #log: Log
  readonly #figures: ListenerMetrics | undefined
  readonly #repeated: RepeatedRefusals

  constructor(log: Log, figures?: ListenerMetrics) {
    this.#figures = figures
    // no field of ours can hold a secret, and looking for one would cost more than the line
    this.#log = log.child({}, { redact: [] })
    this.#repeated = new RepeatedRefusals((unlogged) => this.#log.info(unlogged, 'More of the same were refused'))
  }

  /** Writes what was counted in place of being written. */
  flush(): void {
    this.#repeated.flush()
  }

  /** One line for each message that came to its end, or was cut off. */
  message(envelope: Envelope, { id, size, found, reply, ms }: Ending): void {
    const { results, message_id, from_domain, email_ids } = found
    if (results) this.#figures?.checked(results)
    // one that was cut off has no end to count from
    if (ms > 0) this.#figures?.answered(ms / 1000)
    const to = recipientsOf(envelope)
    const line = {
      ...from(clientOf(envelope)),
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
      ...replied(reply),
      ms: Math.round(ms),
    }
    this.#log.info(line, id === null ? 'Message refused' : 'Message taken')
  }

  /** One line for each message whose client went away before its end; `size` is what had come of it. */
  lost(envelope: Envelope, size: number): void {
    if (!this.#repeated.admits(envelope.remote_address, 'connection lost')) return
    const to = recipientsOf(envelope)
    const line = { ...from(clientOf(envelope)), from: loggable(envelope.mail_from, maxName), to, size, result: 'lost' }
    this.#log.info(line, 'Connection lost during DATA')
  }

  /** One line for each recipient that was refused, with the address as the client wrote it. */
  recipient(envelope: Envelope, address: string, reply: string): void {
    if (!this.#admits('recipient', envelope.remote_address, reply)) return
    const names = { from: loggable(envelope.mail_from, maxName), to: loggable(address, maxName) }
    this.#log.info({ ...from(clientOf(envelope)), ...names, ...replied(reply) }, 'Recipient refused')
  }

  /** One line for each sender that was refused, with the address as the client wrote it. */
  sender(client: Client, address: string, reply: string): void {
    if (!this.#admits('sender', client.ip, reply)) return
    this.#log.info({ ...from(client), from: loggable(address, maxName), ...replied(reply) }, 'Sender refused')
  }

  /** One line for any other command that was refused; after a 421 the session is over. */
  command(client: Client, command: string | null, reply: string): void {
    if (!this.#admits('command', client.ip, reply)) return
    const written = command === null ? null : loggable(command, maxText)
    const sender = /^MAIL FROM:\s*<([^>]*)>/i.exec(written ?? '')?.[1]
    const names = { command: written, ...(sender === undefined ? {} : { from: sender.slice(0, maxName) }) }
    this.#log.info(
      { ...from(client), ...names, ...replied(reply) },
      reply.startsWith('421') ? 'Session closed' : 'Command refused',
    )
  }

  /** One line for each connection that was not taken. */
  connection(ip: string, reply: string): void {
    this.count('connection', reply)
    if (this.#admits('connection', ip, reply)) this.#log.warn({ ip, ...replied(reply) }, 'Connection refused')
  }

  /** One line for each TLS handshake that failed; `why` is from the TLS library. */
  handshake(client: Client, why: string): void {
    if (!this.#repeated.admits(client.ip, 'TLS handshake')) return
    this.#log.info({ ...from(client), reason: loggable(why, maxText) }, 'TLS handshake failed')
  }

  /** One line for each login that failed; `identity` is null unless the name is known here. */
  login(client: Client, { identity, why }: { identity: string | null; why: string }, reply: string): void {
    if (!this.#admits('login', client.ip, reply)) return
    this.#log.warn({ ...from(client), identity, why, ...replied(reply) }, 'Login failed')
  }

  /** One line for each login that was not tried, as too many from that network failed. */
  blocked(client: Client, reply: string): void {
    if (!this.#admits('login', client.ip, reply)) return
    this.#log.warn({ ...from(client), ...replied(reply) }, 'Login not tried: too many failed from this network')
  }

  /** Counts a refusal for the metrics. */
  refused(stage: Stage, { responseCode, message }: ReplyError): void {
    this.#figures?.refused(stage, responseCode, message)
  }

  count(stage: Stage, reply: string): void {
    this.#figures?.refused(stage, Number(reply.slice(0, 3)), reply.slice(4))
  }

  #admits(stage: string, ip: string, reply: string): boolean {
    return this.#repeated.admits(ip, `${stage} ${reply.slice(0, 3)} ${enhancedCodeIn(reply) ?? ''}`.trimEnd())
  }
}

/** A reply as the client hears it. */
export function spoken({ responseCode, message }: ReplyError): string {
  return `${responseCode} ${message}`
}

function replied(reply: string): { code: number; enhanced_code: string | null; reply: string } {
  return { code: Number(reply.slice(0, 3)), enhanced_code: enhancedCodeIn(reply), reply: loggable(reply, maxText) }
}

function clientOf({ session, remote_address, helo, tls }: Envelope): Client {
  return { session, ip: remote_address, helo, tls }
}

function from({ session, ip, helo, tls }: Client): object {
  return {
    session,
    ip,
    ...(helo ? { helo: loggable(helo, maxName) } : {}),
    tls: tls?.version ?? null,
    ...(tls ? { cipher: tls.cipher } : {}),
  }
}

/** As many as a line has room for. */
function recipientsOf({ recipients }: Envelope): string[] {
  let room = maxRecipients
  const found: string[] = []
  for (const recipient of recipients) {
    const address = loggable(recipient, maxName)
    room -= address.length
    if (room < 0) break
    found.push(address)
  }
  return found
}
