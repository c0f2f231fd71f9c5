import { largeWork } from '../../core/work/long-work.ts'
import { release } from '../../core/memory.ts'
import type { Inbox } from '../../mail/inbox.ts'
import type { Envelope } from '../../mail/model.ts'
import type { OutgoingEmails, QueuedEmail } from '../../mail/outgoing.ts'
import type { ExaminedMessage } from '../../mail/types.ts'
import { WorkLimiter } from '../../net/work-limiter.ts'
import { refused } from './undelivered.ts'

/** Bytes from which a message is large: its recipients are delivered together. */
const large = 64 * 1024

/** Large messages that are delivered at once, of all accounts and of one: each takes several times its size in memory. */
const concurrent = { all: 2, one: 1 }

interface Deps {
  outgoing: Pick<OutgoingEmails, 'rawMessage'>
  inbox: Pick<Inbox, 'examineInternal' | 'deliverInternal'>
}

type Message = Pick<ExaminedMessage, 'raw' | 'examined'>

/** The delivery to one recipient, once the message can be read. */
type Delivery = (read: () => Promise<Message>) => Promise<unknown>

/**
 * Delivers to recipients on this box. A large message is read and examined once for all recipients that wait for it; few are in memory at once, and
 * accounts take turns.
 */
export class LocalDelivery {
  readonly #deps: Deps
  readonly #limiter = new WorkLimiter({ concurrent, large })
  /** Deliveries of large messages that wait for their account's turn, by message. */
  readonly #waiting = new Map<string, Delivery[]>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * Delivers to the recipient of the envelope. Returns the ids of the e-mails. Throws the Refusal for RCPT or DATA; rejects when
   * the signal aborts before.
   */
  deliver(queued: QueuedEmail, envelope: Envelope, signal: AbortSignal): Promise<string[]> {
    const { email } = queued
    const deliver = (read: () => Promise<Message>): Promise<string[]> => {
      signal.throwIfAborted()
      return this.#deps.inbox.deliverInternal(envelope, email.size, read)
    }
    if (email.size < large) return deliver(() => this.#read(queued, envelope))
    return new Promise((resolve, reject) => {
      const delivery: Delivery = (read) => Promise.resolve(read).then(deliver).then(resolve, reject)
      const waiting = this.#waiting.get(email.id)
      if (waiting) waiting.push(delivery)
      else void this.#together(queued, envelope, [delivery])
    })
  }

  /** Delivers to all recipients that wait when it is the account's turn, one after another. */
  async #together(queued: QueuedEmail, envelope: Envelope, deliveries: Delivery[]): Promise<void> {
    const { id, size } = queued.email
    this.#waiting.set(id, deliveries)
    const share = this.#limiter.share(queued.account_id)
    share.reserve(size)
    await share.run(undefined, async () => {
      this.#waiting.delete(id)
      let message: Promise<Message> | undefined
      await largeWork(queued.account_id, size, async () => {
        for (const deliver of deliveries) await deliver(() => (message ??= this.#read(queued, envelope)))
        const found = await message?.catch(() => undefined)
        if (found) release(found.raw)
      })
    })
    share.release()
  }

  async #read({ email, account_id }: QueuedEmail, envelope: Envelope): Promise<Message> {
    const raw = await this.#deps.outgoing.rawMessage(email)
    if (!raw) throw refused('the message no longer exists')
    return { raw, examined: await this.#deps.inbox.examineInternal(raw, envelope, account_id) }
  }
}
