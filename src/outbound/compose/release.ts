import type { Basis } from '../../basis.ts'
import { hour, iso, minute } from '../../core/clock.ts'
import { largeWork } from '../../core/work/long-work.ts'
import { release } from '../../core/memory.ts'
import type { Courier, Outcome } from '../../queue/courier.ts'
import type { Queue } from '../../queue/queue.ts'
import type { RecipientRow } from '../../mail/deliveries.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
import { sql, type Transaction } from '../../store/database.ts'
import type { DueEmail, DuePolicy } from './due-policy.ts'
import { recipientsOf } from './held-emails.ts'
import { enqueueCopies } from './outbox.ts'
import { emailFailed, releaseKind, type ReleaseLoad } from '../model.ts'
import { endedWithKey } from './pending.ts'
import { domainOf } from './recipients.ts'
import type { DkimSigner } from './signing.ts'

interface Deps extends Pick<Basis, 'database' | 'clock'> {
  queue: Queue
  outgoing: OutgoingEmails
  signer: DkimSigner
  duePolicy: DuePolicy
}

const gone = 'it is no longer scheduled'

/**
 * Releases scheduled messages when they are due: signs them with the current keys (those of the day they were written may have left the DNS), and
 * enqueues a copy for each recipient. One that policies do not let leave by now is held or fails.
 */
export class Release implements Courier<ReleaseLoad> {
  readonly kind = releaseKind
  readonly stops = true
  readonly schedule = [0, minute, 5 * minute, 15 * minute, hour, 4 * hour, 12 * hour]
  readonly jitter = 0.1
  readonly limits = { healthy: 8, busy: 4, slow: 2 }
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async deliver(load: ReleaseLoad): Promise<string> {
    const { email_id, require_tls } = load
    const { database, outgoing, signer, queue, duePolicy } = this.#deps
    const email = await database.get<DueEmail>(
      sql`SELECT emails.*, identities.account_id FROM emails JOIN identities ON identities.id = emails.identity_id
        WHERE emails.id = ${email_id} AND emails.status = 'scheduled'`,
    )
    if (!email) return gone
    const { signatures, read } = await largeWork(email.account_id, email.size, async () => {
      const octets = await outgoing.rawMessage(email)
      if (!octets) throw new Error(`The raw bytes of ${email_id} are missing.`)
      const looked = await duePolicy.read(email, octets)
      const signed = await signer.sign(domainOf(email.from_address), octets)
      release(octets)
      return { signatures: signed, read: looked }
    })
    const trace = `${signatures}${email.trace}`
    return database.transaction(async (tx) => {
      const row = await tx.get<{ account_id: string }>(
        sql`SELECT account_id FROM emails JOIN identities ON identities.id = emails.identity_id WHERE emails.id = ${email_id}
          AND emails.status = 'scheduled' AND NOT ${endedWithKey}`,
      )
      if (!row) return gone
      const { verdict, own } = await duePolicy.decide(tx, email, read)
      if (verdict === 'refused') {
        await this.cancel(tx, load, 'the policy of its account does not let it leave')
        return verdict
      }
      if (verdict) {
        await duePolicy.hold(tx, email, verdict, { read, load })
        return 'held'
      }
      await outgoing.setTrace(tx, email_id, { trace })
      const recipients = await this.#note(tx, email_id, { status: 'queued', next_attempt_at: this.#now() })
      await enqueueCopies(tx, queue, row.account_id, recipients, { require_tls, own })
      return 'released'
    })
  }

  async settle(tx: Transaction, { email_id }: ReleaseLoad, outcome: Outcome): Promise<void> {
    if (outcome === 'failed') await this.cancel(tx, { email_id }, 'it could not be released; see the log for the reason')
  }

  async cancel(tx: Transaction, { email_id }: Pick<ReleaseLoad, 'email_id'>, response: string): Promise<void> {
    // it may have been cancelled meanwhile
    if (!(await tx.get(sql`SELECT 1 FROM emails WHERE id = ${email_id} AND status = 'scheduled'`))) return
    const rows = await this.#note(tx, email_id, { status: 'failed', response, next_attempt_at: null })
    for (const { seq } of rows) {
      const delivery = await this.#deps.outgoing.updateDelivery(tx, seq, {})
      if (delivery) await this.#deps.outgoing.appendEvent(tx, emailFailed, email_id, { delivery })
    }
  }

  async #note(tx: Transaction, emailId: string, change: Partial<RecipientRow>): Promise<RecipientRow[]> {
    const rows = await recipientsOf(tx, emailId)
    for (const { seq } of rows) await this.#deps.outgoing.updateDelivery(tx, seq, change)
    return rows
  }

  #now(): string {
    return iso(this.#deps.clock.now())
  }
}
