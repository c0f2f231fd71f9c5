import { hash } from 'node:crypto'
import type { Basis } from '../basis.ts'
import { iso } from '../core/clock.ts'
import { isLiving } from '../identities/row.ts'
import type { Plan } from '../accounts/plan.ts'
import type { Caller } from '../core/scopes.ts'
import type { HoldState } from '../core/shapes.ts'
import type { HoldHandler, StoredHold } from '../policy/holds.ts'
import type { PolicyCheck } from '../policy/policy-check.ts'
import type { Queue } from '../queue/queue.ts'
import { sql, type Transaction } from '../store/database.ts'
import { smsKind, type SmsLoad } from './courier.ts'
import { type Sms, smsApproved, type SmsError, smsExpired, smsFailed, smsRejected } from './model.ts'
import { hasOptedOut } from './opt-outs.ts'
import { emitSms, type SmsRow, whole } from './rows.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'events'> {
  queue: Queue
  plan: Plan
  policyCheck: PolicyCheck
}

type Ended = Exclude<HoldState['status'], 'open' | 'approved'>

/** Why a held message failed, and the event of that. */
const endings = {
  rejected: { error: { code: 'rejected', message: 'A person rejected it.' }, event: smsRejected },
  expired: { error: { code: 'expired', message: 'Nobody approved it in time.' }, event: smsExpired },
  cancelled: { error: { code: 'cancelled', message: 'The key that sent it was revoked.' }, event: smsFailed },
} satisfies Record<Ended, { error: SmsError; event: typeof smsFailed }>

/** What becomes of held text messages: an approved one is queued at once. */
export class HeldMessages implements HoldHandler<'sms'> {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async digest({ about }: StoredHold): Promise<string | undefined> {
    const row = await this.#deps.database.get<SmsRow>(sql`SELECT * FROM sms WHERE id = ${about}`)
    return row && digestOf(row.recipient, row.body)
  }

  async release(tx: Transaction, { about }: StoredHold, hold: HoldState): Promise<void> {
    const { events, policyCheck, queue } = this.#deps
    const row = await heldRow(tx, about)
    if (!row) return
    const { id, account_id, identity_id, sender, recipient, provider } = row
    await policyCheck.noteApproved(tx, { id: identity_id, account_id }, [recipient])
    const load: SmsLoad = { sms_id: id }
    const isUnwanted = await hasOptedOut(tx, sender, recipient)
    const delivery = isUnwanted
      ? null
      : await queue.enqueue(tx, { kind: smsKind, lane: `${provider} ${sender}`, account_id, load })
    const queued = await tx.get<SmsRow>(
      sql`UPDATE sms SET status = 'queued', delivery_id = ${delivery}, hold = ${JSON.stringify(hold)} WHERE id = ${id} RETURNING *`,
    )
    await emitSms(tx, events, smsApproved, queued!)
    if (!isUnwanted) return
    const message = `${recipient} opted out of this number (STOP) before the message could be sent.`
    await emitSms(tx, events, smsFailed, await failed(tx, id, { code: 'recipient_opted_out', message }))
  }

  async dismiss(tx: Transaction, { about }: StoredHold, hold: HoldState): Promise<void> {
    const row = await heldRow(tx, about)
    if (!row) return
    const { error, event } = endings[hold.status as Ended]
    await tx.run(sql`UPDATE sms SET hold = ${JSON.stringify(hold)} WHERE id = ${about}`)
    await giveBack(tx, this.#deps.plan, row)
    await emitSms(tx, this.#deps.events, event, await failed(tx, about, error))
  }

  async read(_caller: Caller, { about }: StoredHold): Promise<Sms | null> {
    const { database } = this.#deps
    // its identity may be deleted, and is then invisible with all that it had
    const row = await database.get<SmsRow>(
      sql`SELECT sms.* FROM sms JOIN identities ON identities.id = sms.identity_id WHERE sms.id = ${about} AND ${isLiving(iso(this.#deps.clock.now()))}`,
    )
    return row ? (await whole(database, [row]))[0]! : null
  }
}

/** SHA-256 of what a person looks at, in hexadecimal. */
export function digestOf(to: string, body: string): string {
  return hash('sha256', `${to}\n${body}`)
}

/** Takes back the counts of a held message that is not sent. */
export async function giveBack(tx: Transaction, plan: Plan, { account_id, identity_id, created_at }: SmsRow): Promise<void> {
  await plan.add(tx, account_id, 'sms_sent', -1, Date.parse(created_at))
  await tx.run(
    sql`UPDATE sent_counts SET recipients = recipients - 1 WHERE recipients > 0 AND subject = ${`sms ${identity_id}`} AND hour = ${created_at.slice(0, 13)}`,
  )
}

function heldRow(tx: Transaction, id: string): Promise<SmsRow | undefined> {
  return tx.get<SmsRow>(sql`SELECT * FROM sms WHERE id = ${id} AND status = 'held'`)
}

async function failed(tx: Transaction, id: string, error: SmsError): Promise<SmsRow> {
  const row = await tx.get<SmsRow>(
    sql`UPDATE sms SET status = 'failed', error = ${JSON.stringify(error)} WHERE id = ${id} RETURNING *`,
  )
  return row!
}
