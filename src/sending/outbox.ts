import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { EventLog } from '../events/log.ts'
import type { IdentityRow } from '../identities/identities.ts'
import type { Examiner } from '../mail/examiner.ts'
import type { Address, Email } from '../mail/model.ts'
import type { Outgoing } from '../mail/outgoing.ts'
import type { Database } from '../store/database.ts'
import { emailQueued } from './model.ts'

/** A message that a program composed itself. */
export interface RawMail {
  owner: IdentityRow
  /** With CRLF throughout; its author has been checked. */
  raw: Buffer
  /** All of them, in the order of the envelope. */
  recipients: string[]
  /** Only over checked TLS all the way (RFC 8689). */
  require_tls?: boolean
}

/** Where messages of our own are taken for sending. */
export class Outbox {
  readonly #parts: { database: Database; events: EventLog; clock: Clock; examiner: Examiner; outgoing: Outgoing }

  constructor(parts: { database: Database; events: EventLog; clock: Clock; examiner: Examiner; outgoing: Outgoing }) {
    this.#parts = parts
  }

  /** Keeps a message that is complete but for its Date and Message-ID; resolves once it is on disk. */
  async acceptRaw({ owner, raw, recipients }: RawMail): Promise<Email> {
    const { database, outgoing, examiner } = this.#parts
    const complete = this.#completed(raw, owner.email)
    const examined = await examiner.examine(complete, {
      remote_address: '',
      helo: '',
      mail_from: owner.email,
      recipients,
      smtputf8: false,
      eight_bit: true,
      tls: null,
      session: '',
      own: true,
    })
    const { to, cc } = examined.parsed
    const sorted = recipients.map((address) => ({
      field: named(to, address) ? ('to' as const) : named(cc, address) ? ('cc' as const) : ('bcc' as const),
      address: named(to, address) ?? named(cc, address) ?? { address, name: '' },
    }))
    return database.transaction(async (tx) => {
      const kept = { owner, raw: complete, examined, recipients: sorted, labels: [], send_at: null, trace: '' }
      const { email } = await outgoing.keep(tx, kept)
      await outgoing.tell(tx, emailQueued, email.id, {})
      return email
    })
  }

  /** Without Bcc and Return-Path (RFC 5322 3.6.3, RFC 5321 4.4), and with what RFC 6409 8 lets us add. */
  #completed(raw: Buffer, sender: string): Buffer {
    const text = raw.toString('latin1')
    const end = text.startsWith('\r\n') ? 0 : text.indexOf('\r\n\r\n') + 2
    const header = end < 2 ? text : text.slice(0, end)
    const fields = header.split(/(?<=\n)(?![ \t])/).filter((field) => !/^(?:bcc|return-path)[ \t]*:/i.test(field))
    const has = (name: string): boolean => fields.some((field) => field.toLowerCase().startsWith(name))
    const date = new Date(this.#parts.clock.now()).toUTCString().replace('GMT', '+0000')
    if (!has('date:')) fields.push(`Date: ${date}\r\n`)
    if (!has('message-id:')) fields.push(`Message-ID: <${randomUUID()}@${sender.slice(sender.lastIndexOf('@') + 1)}>\r\n`)
    return Buffer.concat([Buffer.from(fields.join(''), 'latin1'), raw.subarray(header.length)])
  }
}

function named(list: Address[], address: string): Address | undefined {
  return list.find((one) => one.address.toLowerCase() === address.toLowerCase())
}
