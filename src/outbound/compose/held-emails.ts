import { hash } from 'node:crypto'
import type { Basis } from '../../basis.ts'
import type { Plan } from '../../accounts/plan.ts'
import { iso } from '../../core/clock.ts'
import { release } from '../../core/memory.ts'
import type { Caller } from '../../core/scopes.ts'
import type { HoldState } from '../../core/shapes.ts'
import { largeWork } from '../../core/work/long-work.ts'
import { isOfLiving } from '../../identities/row.ts'
import type { Emails } from '../../mail/emails.ts'
import type { EmailDetail, StoredEmail } from '../../mail/email-rows.ts'
import type { RecipientRow } from '../../mail/deliveries.ts'
import type { Email } from '../../mail/model.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
import type { HoldHandler, StoredHold } from '../../policy/holds.ts'
import type { PolicyCheck } from '../../policy/policy-check.ts'
import type { Queue } from '../../queue/queue.ts'
import { sql, type Transaction } from '../../store/database.ts'
import { emailApproved, emailExpired, emailRejected, releaseKind, type ReleaseLoad } from '../model.ts'
import type { SendLimits } from './limits.ts'
import type { Outbox } from './outbox.ts'
import { domainOf } from './recipients.ts'

interface Deps extends Pick<Basis, 'database' | 'clock'> {
  emails: Emails
  outgoing: OutgoingEmails
  queue: Queue
  outbox: Outbox
  limits: SendLimits
  policyCheck: PolicyCheck
  plan: Plan
}

/** What becomes of held e-mails: an approved one is signed and sent as a scheduled one is (`Release`). */
export class HeldEmails implements HoldHandler<'email'> {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async digest({ account_id, about: emailId }: StoredHold): Promise<string | undefined> {
    const { database, outgoing } = this.#deps
    const email = await database.get<StoredEmail>(sql`SELECT * FROM emails WHERE id = ${emailId}`)
    if (!email) return undefined
    return largeWork(account_id, email.size, async () => {
      const octets = await outgoing.rawMessage({ ...email, trace: '' })
      if (!octets) return undefined
      const digest = hash('sha256', octets)
      release(octets)
      return digest
    })
  }

  async release(tx: Transaction, { about: emailId }: StoredHold, hold: HoldState): Promise<void> {
    const { queue, outgoing, clock, policyCheck } = this.#deps
    const email = await heldEmail(tx, emailId)
    if (!email) return
    const { send_at, require_tls = false } = JSON.parse(email.detail) as EmailDetail
    const now = iso(clock.now())
    const due = send_at !== undefined && send_at > now ? send_at : now
    const load: ReleaseLoad = { email_id: emailId, require_tls }
    const lane = domainOf(email.from_address)
    const delivery_id = await queue.enqueue(tx, { kind: releaseKind, lane, account_id: email.account_id, load, due })
    await setHold(tx, emailId, hold)
    const rows = await recipientsOf(tx, emailId)
    for (const { seq } of rows) await outgoing.updateDelivery(tx, seq, { status: 'scheduled', next_attempt_at: due, delivery_id })
    const addresses = rows.map(({ address }) => address)
    await policyCheck.noteApproved(tx, { id: email.identity_id, account_id: email.account_id }, addresses)
    await outgoing.appendEvent(tx, emailApproved, emailId, {})
  }

  async dismiss(tx: Transaction, { about: emailId }: StoredHold, hold: HoldState): Promise<void> {
    const { outgoing, outbox, limits, plan } = this.#deps
    const email = await heldEmail(tx, emailId)
    if (!email) return
    await setHold(tx, emailId, hold)
    const rows = await recipientsOf(tx, emailId)
    const response = hold.status === 'expired' ? 'nobody approved it in time' : 'a person rejected it'
    for (const { seq } of rows) await outgoing.updateDelivery(tx, seq, { status: 'cancelled', next_attempt_at: null, response })
    const at = countedAt(email)
    const addresses = rows.map(({ address }) => address)
    await limits.giveBack(tx, outbox.sendCountOf(email.identity_id, email.from_address, addresses, at))
    await plan.add(tx, email.account_id, 'emails_sent', -1, at)
    await outgoing.appendEvent(tx, hold.status === 'expired' ? emailExpired : emailRejected, emailId, {})
  }

  async read(caller: Caller, { identity_id, about: emailId }: StoredHold): Promise<Email | null> {
    const { database, emails, clock } = this.#deps
    // its identity may be deleted, and is then invisible with all that it had
    const living = isOfLiving(sql`emails.identity_id`, iso(clock.now()))
    if (!(await database.get(sql`SELECT 1 FROM emails WHERE id = ${emailId} AND ${living}`))) return null
    return emails.get(caller, identity_id, emailId)
  }
}

/** Notes in an e-mail what became of its hold. */
export async function setHold(tx: Transaction, emailId: string, hold: HoldState): Promise<void> {
  await tx.run(sql`UPDATE emails SET detail = json_set(detail, '$.hold', json(${JSON.stringify(hold)})) WHERE id = ${emailId}`)
}

/** The time under which the rate limits counted a message, in milliseconds since the Unix epoch. */
export function countedAt({ detail, received_at }: StoredEmail): number {
  const { send_at } = JSON.parse(detail) as Partial<EmailDetail>
  return Date.parse(send_at ?? received_at)
}

function heldEmail(tx: Transaction, emailId: string): Promise<(StoredEmail & { account_id: string }) | undefined> {
  return tx.get(
    sql`SELECT emails.*, identities.account_id FROM emails JOIN identities ON identities.id = emails.identity_id
      WHERE emails.id = ${emailId} AND emails.status = 'held'`,
  )
}

export function recipientsOf(tx: Transaction, emailId: string): Promise<RecipientRow[]> {
  return tx.all<RecipientRow>(sql`SELECT * FROM email_recipients WHERE email_id = ${emailId} ORDER BY position`)
}
