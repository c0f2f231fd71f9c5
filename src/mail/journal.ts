import type { Log } from '../core/log.ts'
import type { DoorFigures, Stage } from './figures.ts'
import type { CheckResults } from './mailroom.ts'
import type { Envelope } from './model.ts'
import type { ReplyError } from './replies.ts'

/** How one message ended. */
export interface Ending {
  /** Its id at the mailroom; null when it was not kept. */
  id: string | null
  octets: number
  /** What the checks said, if it came so far. */
  results: CheckResults | null
  /** As the client heard it; an error is a refusal. */
  reply: string | ReplyError
  /** From the end of DATA to the reply. */
  milliseconds: number
}

/** The mail log, at level info: who sent what to whom, and what we said. Addresses and figures, nothing of the messages themselves. */
export class Journal {
  readonly #log: Log
  readonly #figures: DoorFigures | undefined

  constructor(log: Log, figures?: DoorFigures) {
    this.#figures = figures
    // no field of ours can hold a secret, and looking for one would cost more than the line
    this.#log = log.child({}, { redact: [] })
  }

  /** One line for each message that came to its end, or was cut off. */
  message(envelope: Envelope, { id, octets, results, reply, milliseconds }: Ending): void {
    if (typeof reply !== 'string') this.#refused('message', reply)
    if (results) this.#figures?.checked(results)
    // one that was cut off has no end to count from
    if (milliseconds > 0) this.#figures?.answered(milliseconds / 1000)
    const said = typeof reply === 'string' ? reply : spoken(reply)
    const line = { queue_id: id, ...from(envelope), recipients: envelope.recipients, octets, reply: said, ...results }
    this.#log.info({ ...line, milliseconds: Math.round(milliseconds) }, id === null ? 'Message refused' : 'Message taken')
  }

  /** One line for each recipient that was refused, with the address as the client wrote it. */
  recipient(envelope: Envelope, address: string, reply: ReplyError): void {
    this.#refused('recipient', reply)
    this.#log.info({ ...from(envelope), recipient: address, reply: spoken(reply) }, 'Recipient refused')
  }

  /** One line for each sender that was refused. */
  sender(session: string, reply: ReplyError): void {
    this.#refused('sender', reply)
    this.#log.debug({ session, reply: spoken(reply) }, 'Sender refused')
  }

  #refused(stage: Stage, { responseCode, message }: ReplyError): void {
    this.#figures?.refused(stage, responseCode, message)
  }
}

function spoken({ responseCode, message }: ReplyError): string {
  return `${responseCode} ${message}`
}

function from({ session, remote_address, helo, mail_from, tls }: Envelope): object {
  return { session, client: remote_address, helo, sender: mail_from, tls: tls?.version ?? null }
}
