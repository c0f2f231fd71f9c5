import type { Basis } from '../../basis.ts'
import type { Keys } from '../../accounts/keys.ts'
import type { Plan } from '../../accounts/plan.ts'
import { iso, minute } from '../../core/clock.ts'
import { sweep } from '../../core/cron.ts'
import { conflict, notFound } from '../../core/fault.ts'
import type { Caller } from '../../core/scopes.ts'
import type { Queue } from '../../queue/queue.ts'
import { type Cascade, endSome, window } from '../../identities/cascade.ts'
import type { Identities } from '../../identities/identities.ts'
import type { StoredEmail } from '../../mail/email-rows.ts'
import type { Emails } from '../../mail/emails.ts'
import type { RecipientRow } from '../../mail/deliveries.ts'
import type { Dispatcher } from '../../mail/types.ts'
import type { Email } from '../../mail/model.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
import { sql, type Sql, type Transaction } from '../../store/database.ts'
import type { Drafts } from './drafts.ts'
import type { SendLimits } from './limits.ts'
import type { Holds } from '../../policy/holds.ts'
import { emailCancelled } from '../model.ts'
import { countedAt, setHold } from './held-emails.ts'
import type { Outbox } from './outbox.ts'
import { headerDate } from './prepare-raw.ts'

interface Deps extends Pick<Basis, 'log' | 'database' | 'clock'> {
  keys: Pick<Keys, 'ends' | 'origins'>
  identities: Identities
  cascade: Cascade
  emails: Emails
  outgoing: OutgoingEmails
  queue: Queue
  outbox: Outbox
  drafts: Drafts
  limits: SendLimits
  plan: Plan
  holds: Holds
}

/** The statuses of messages that wait for one recipient at least. */
const unsent: ReadonlySet<string> = new Set(['held', 'scheduled', 'queued', 'sending', 'deferred'])

/** The condition of messages (`emails`) that end with a key which was revoked together with what it created. */
export const endedWithKey = sql`EXISTS (SELECT 1 FROM api_keys WHERE revoked_at IS NOT NULL AND kept = 0 AND id IN (
  SELECT json_extract(emails.detail, '$.created_by') UNION ALL SELECT origin_id FROM credential_origins WHERE credential_origins.id = emails.id))`

/** Accepted messages that are not sent yet: they can be cancelled, and scheduled ones rescheduled. */
export class Pending implements Dispatcher {
  readonly #deps: Deps
  /** True if an identity was resumed since the last look at what waits. */
  #resumed = false
  #retrying = false

  constructor(deps: Deps) {
    this.#deps = deps
    deps.keys.ends(
      'scheduled_emails',
      sql`SELECT id, json_extract(detail, '$.created_by') AS created_by FROM emails WHERE status = 'scheduled'
        UNION ALL SELECT id, json_extract(detail, '$.created_by') FROM emails WHERE status = 'held'`,
      (tx, ids) => this.#end(tx, ids),
    )
    deps.cascade.add((tx, identityId, after) => this.withdrawSome(tx, identityId, after))
    deps.identities.onResume(async (tx) => tx.afterCommit(() => this.#resume()))
  }

  /** Cancels a message; throws Fault conflict when a delivery to any recipient was attempted. */
  async cancel(caller: Caller, identityId: string, emailId: string): Promise<Email> {
    const { database, identities, emails } = this.#deps
    await database.transaction(async (tx) => {
      await identities.row(caller, identityId, tx)
      const email = await tx.get<StoredEmail>(sql`SELECT * FROM emails WHERE id = ${emailId} AND identity_id = ${identityId}`)
      if (!email) throw notFound('e-mail')
      const rows = await this.#recipients(tx, emailId)
      const count = await this.#cancel(tx, email, rows)
      if (rows.length > 0 && count === rows.length) return
      throw conflict(`This e-mail is ${email.status}; an e-mail can be cancelled only before the first delivery attempt.`, {
        code: 'not_cancellable',
      })
    })
    return emails.get(caller, identityId, emailId)
  }

  /**
   * Cancels the waiting deliveries, attempted or not, of a message that is being deleted or whose identity was. Returns how many recipients it
   * has.
   */
  async withdraw(tx: Transaction, emailId: string): Promise<number> {
    const email = await tx.get<StoredEmail>(sql`SELECT * FROM emails WHERE id = ${emailId}`)
    if (!email) return 0
    await this.#cancel(tx, email, await this.#recipients(tx, emailId))
    const { outgoing, queue } = this.#deps
    const recipients = await this.#recipients(tx, emailId)
    for (const { seq, status, delivery_id } of recipients) {
      // a running delivery is ended by its courier
      if (!['queued', 'deferred'].includes(status) || delivery_id === null || !(await queue.abandon(tx, delivery_id))) continue
      await outgoing.updateDelivery(tx, seq, { status: 'cancelled', next_attempt_at: null })
    }
    return recipients.length
  }

  /** Cancels messages that a deleted identity has not sent yet: a batch of its e-mails. Running deliveries are ended by their courier. */
  async withdrawSome(tx: Transaction, identityId: string, after: number): Promise<number | undefined> {
    const rows = await tx.all<Pick<StoredEmail, 'seq' | 'id' | 'status' | 'direction'>>(
      sql`SELECT seq, id, status, direction FROM emails WHERE identity_id = ${identityId} AND seq > ${after} ORDER BY seq LIMIT ${window}`,
    )
    return endSome(rows, async ({ id, status, direction }) =>
      direction === 'outbound' && unsent.has(status) ? this.withdraw(tx, id) : 0,
    )
  }

  /** Cancels messages scheduled by keys that were revoked since, in batches. */
  async withdrawEnded(signal?: AbortSignal): Promise<void> {
    const { database } = this.#deps
    // read in a thread: any number of messages is scheduled
    const ended = await database.slow<{ seq: number; id: string }>(
      sql`SELECT seq, id FROM emails WHERE status = 'scheduled' AND ${endedWithKey}
        UNION ALL SELECT seq, id FROM emails WHERE status = 'held' AND ${endedWithKey}`,
      minute,
    )
    const step = async (): Promise<boolean> => {
      const some = ended.slice(-window)
      const last = await database.transaction((tx) => endSome(some, ({ id }) => this.withdraw(tx, id)))
      ended.splice(-some.length, some.findIndex(({ seq }) => seq === last) + 1)
      return ended.length > 0
    }
    if (ended.length > 0) await sweep(step, signal)
  }

  /** Retries now, in batches, the deliveries that waited only because their identity was suspended, and no longer is. */
  async retryResumed(signal?: AbortSignal): Promise<void> {
    const { queue, outgoing, database, clock } = this.#deps
    let after = 0
    const step = async (): Promise<boolean> => {
      const last = await database.transaction(async (tx) => {
        const now = iso(clock.now())
        const rows = await tx.all<Pick<RecipientRow, 'seq' | 'delivery_id'> & { resumed: number }>(
          sql`SELECT one.seq, one.delivery_id, identities.status = 'active' AND one.next_attempt_at > ${now} AS resumed
            FROM email_recipients AS one JOIN emails ON emails.id = one.email_id JOIN identities ON identities.id = emails.identity_id
            WHERE one.suspended = 1 AND one.status = 'deferred' AND one.seq > ${after} ORDER BY one.seq LIMIT ${window}`,
        )
        return endSome(rows, async ({ seq, delivery_id, resumed }) => {
          if (resumed !== 1 || delivery_id === null || !(await queue.retryNow(tx, delivery_id))) return 0
          await outgoing.updateDelivery(tx, seq, { next_attempt_at: now })
          return 1
        })
      })
      after = last ?? after
      return last !== undefined
    }
    await sweep(step, signal)
  }

  async reschedule(tx: Transaction, caller: Caller, email: StoredEmail, input: string): Promise<void> {
    const { keys, queue, clock, outgoing, outbox, limits, plan } = this.#deps
    const rows = await this.#recipients(tx, email.id)
    const [first] = rows
    const at = this.#deps.drafts.sendAt(input) ?? iso(clock.now())
    await keys.origins.requireInGrace(tx, caller, at)
    const moved = email.status === 'scheduled' && first?.delivery_id && (await queue.postpone(tx, first.delivery_id, at))
    if (!moved) throw conflict(`This e-mail is ${email.status}; only a scheduled one has a send_at.`, { code: 'not_scheduled' })
    const addresses = rows.map(({ address }) => address)
    await plan.move(tx, await this.#accountOf(tx, email), 'emails_sent', countedAt(email), Date.parse(at))
    await limits.giveBack(tx, outbox.sendCountOf(email.identity_id, email.from_address, addresses, countedAt(email)))
    await limits.count(tx, outbox.sendCountOf(email.identity_id, email.from_address, addresses, Date.parse(at)))
    // a scheduled message is unsigned, so its trace is only the Date
    await outgoing.setTrace(tx, email.id, { trace: `Date: ${headerDate(Date.parse(at))}\r\n`, send_at: at })
    for (const { seq } of rows) await outgoing.updateDelivery(tx, seq, { next_attempt_at: at })
  }

  /** Messages of revoked keys are not released from now on (`Release`); they are cancelled, with events, soon after. */
  async #end(tx: Transaction, ids: Sql): Promise<number> {
    const row = await tx.get<{ n: number }>(sql`SELECT count(*) AS n FROM emails WHERE id IN (${ids})`)
    if (row!.n > 0) {
      const { log } = this.#deps
      const failed = (error: unknown): void =>
        log.error({ err: error }, 'scheduled e-mails of revoked keys could not be cancelled')
      tx.afterCommit(() => void this.withdrawEnded().catch(failed))
    }
    return row!.n
  }

  /** Retries the deliveries of an identity that is active again, once more where that is asked for meanwhile. */
  #resume(): void {
    this.#resumed = true
    if (!this.#retrying) void this.#retry()
  }

  async #retry(): Promise<void> {
    const { log } = this.#deps
    const failed = (error: unknown): void =>
      log.error({ err: error }, 'deferred e-mails of resumed identities could not be retried')
    this.#retrying = true
    while (this.#resumed) {
      this.#resumed = false
      await this.retryResumed().catch(failed)
    }
    this.#retrying = false
  }

  /** Cancels deliveries that were not attempted. Returns how many. */
  async #cancel(tx: Transaction, email: StoredEmail, rows: RecipientRow[]): Promise<number> {
    const { outgoing, outbox, limits, plan, holds } = this.#deps
    const hold = email.status === 'held' ? await holds.withdraw(tx, email.id) : undefined
    if (hold) await setHold(tx, email.id, hold)
    const waiting = rows.filter(({ status }) => status === 'held' || status === 'scheduled' || status === 'queued')
    const cancelled = new Map<string, boolean>()
    const cancelledRows: RecipientRow[] = []
    for (const row of waiting) {
      if (row.status !== 'held') {
        if (row.delivery_id === null) continue
        const known = cancelled.get(row.delivery_id) ?? (await this.#stop(tx, row, row.delivery_id))
        cancelled.set(row.delivery_id, known)
        if (!known) continue
      }
      await outgoing.updateDelivery(tx, row.seq, { status: 'cancelled', next_attempt_at: null })
      cancelledRows.push(row)
    }
    if (cancelledRows.length === 0) return 0
    const addresses = cancelledRows.map(({ address }) => address)
    await limits.giveBack(tx, outbox.sendCountOf(email.identity_id, email.from_address, addresses, countedAt(email)))
    if (cancelledRows.length === rows.length)
      await plan.add(tx, await this.#accountOf(tx, email), 'emails_sent', -1, countedAt(email))
    await outgoing.appendEvent(tx, emailCancelled, email.id, {})
    return cancelledRows.length
  }

  async #accountOf(tx: Transaction, { identity_id }: StoredEmail): Promise<string> {
    const row = await tx.get<{ account_id: string }>(sql`SELECT account_id FROM identities WHERE id = ${identity_id}`)
    return row!.account_id
  }

  /** Stops a delivery. Returns true if nothing more is sent; a scheduled message was never sent, however often its release was attempted. */
  async #stop(tx: Transaction, { status }: RecipientRow, deliveryId: string): Promise<boolean> {
    const { queue } = this.#deps
    if (await queue.cancel(tx, deliveryId)) return true
    if (status !== 'scheduled') return false
    // a running release finds it cancelled
    await queue.abandon(tx, deliveryId)
    return true
  }

  #recipients(tx: Transaction, emailId: string): Promise<RecipientRow[]> {
    return tx.all<RecipientRow>(sql`SELECT * FROM email_recipients WHERE email_id = ${emailId} ORDER BY position`)
  }
}
