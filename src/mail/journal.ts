import type { Log } from '../core/log.ts'
import type { CheckResults } from './mailroom.ts'
import type { Envelope } from './model.ts'

/** How one message ended. */
export interface Ending {
  /** Its id at the mailroom; null when it was not kept. */
  id: string | null
  octets: number
  /** What the checks said, if it came so far. */
  results: CheckResults | null
  /** As the client heard it. */
  reply: string
  /** From the end of DATA to the reply. */
  milliseconds: number
}

/** The mail log, at level info: who sent what to whom, and what we said. Addresses and figures, nothing of the messages themselves. */
export class Journal {
  readonly #log: Log

  constructor(log: Log) {
    // no field of ours can hold a secret, and looking for one would cost more than the line
    this.#log = log.child({}, { redact: [] })
  }

  /** One line for each message that came to its end, or was cut off. */
  message(envelope: Envelope, { id, results, milliseconds, ...ending }: Ending): void {
    const line = { queue_id: id, ...from(envelope), recipients: envelope.recipients, ...ending, ...results }
    this.#log.info({ ...line, milliseconds: Math.round(milliseconds) }, id === null ? 'Message refused' : 'Message taken')
  }

  /** One line for each recipient that was refused, with the address as the client wrote it. */
  recipient(envelope: Envelope, address: string, reply: string): void {
    this.#log.info({ ...from(envelope), recipient: address, reply }, 'Recipient refused')
  }
}

function from({ session, remote_address, helo, mail_from, tls }: Envelope): object {
  return { session, client: remote_address, helo, sender: mail_from, tls: tls?.version ?? null }
}
