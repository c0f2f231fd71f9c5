import type { Basis } from '../../basis.ts'
import { isId } from '../../core/ids.ts'
import type { IdentityRow } from '../../identities/identities.ts'
import type { EmailDetail, StoredEmail } from '../../mail/email-rows.ts'
import type { OutgoingEmails } from '../../mail/outgoing.ts'
import type { Examiner } from '../../mail/workers/examiner.ts'
import type { Holds } from '../../policy/holds.ts'
import type { EmailVerdict, Held, PolicyCheck, Sender } from '../../policy/policy-check.ts'
import { type Reader, sql, type Transaction } from '../../store/database.ts'
import { emailHeld, type ReleaseLoad } from '../model.ts'
import { recipientsOf, setHold } from './held-emails.ts'
import { contentOf, envelopeOf } from './outbox.ts'

interface Deps extends Pick<Basis, 'database'> {
  outgoing: OutgoingEmails
  examiner: Examiner
  policyCheck: PolicyCheck
  holds: Holds
}

/** A scheduled message that is due. */
export type DueEmail = StoredEmail & { account_id: string }

/** What was read of its bytes: what policies look at, and their SHA-256 in hexadecimal. */
interface Read extends ReturnType<typeof contentOf> {
  sha256: string
}

/** The policies at the time a scheduled message is due, which may be others than when it was accepted. What a person has approved leaves. */
export class DuePolicy {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Reads the bytes of a message, its trace included, where a policy may hold it. */
  async read(email: DueEmail, octets: Buffer): Promise<Read | undefined> {
    const { database, policyCheck, examiner } = this.#deps
    if (isApproved(email)) return undefined
    const owner = await ownerOf(database, email)
    const scan = await policyCheck.scans(database, senderOf(email), owner)
    if (scan === undefined) return undefined
    // as it was when it was accepted
    const raw = octets.subarray(Buffer.byteLength(email.trace))
    const envelope = envelopeOf(email.from_address, scan)
    const examined = await examiner.examine(raw, envelope, email.account_id)
    return { ...contentOf(examined), sha256: examined.sha256 }
  }

  /** Decides in the transaction of the release. */
  async decide(tx: Transaction, email: DueEmail, read: Read | undefined): Promise<EmailVerdict> {
    if (isApproved(email)) return { verdict: undefined, own: new Set() }
    const owner = await ownerOf(tx, email)
    const rows = await recipientsOf(tx, email.id)
    return this.#deps.policyCheck.email(tx, senderOf(email), {
      owner,
      addresses: rows.map(({ address }) => address),
      inReplyTo: email.in_reply_to,
      // where nothing was read, the policy was changed since: what is not known is held
      ...(read ?? { hasAttachments: null, hasLinks: null, found: null }),
    })
  }

  /** Holds a message for a person. Throws Fault rate_limited, code `too_many_holds`. */
  async hold(
    tx: Transaction,
    email: DueEmail,
    held: Held,
    { read, load }: { read: Read | undefined; load: ReleaseLoad },
  ): Promise<void> {
    const { holds, outgoing } = this.#deps
    if (!read) throw new Error(`The policy of ${email.id} was changed meanwhile.`)
    const owner = { id: email.identity_id, account_id: email.account_id }
    const hold = await holds.prepare(tx, owner)
    const { created_by = null } = detailOf(email)
    await holds.insert(tx, hold, { kind: 'email', owner, created_by, about: email.id, sha256: read.sha256, held })
    await setHold(tx, email.id, hold)
    if (load.require_tls) await outgoing.keepRequireTls(tx, email.id)
    for (const { seq } of await recipientsOf(tx, email.id)) {
      await outgoing.updateDelivery(tx, seq, { status: 'held', next_attempt_at: null, delivery_id: null })
    }
    await outgoing.appendEvent(tx, emailHeld, email.id, {})
  }
}

function detailOf({ detail }: DueEmail): EmailDetail {
  return JSON.parse(detail) as EmailDetail
}

function isApproved(email: DueEmail): boolean {
  return detailOf(email).hold?.status === 'approved'
}

/** Without a creator it is of the box, or of its operator. */
function senderOf(email: DueEmail): Sender {
  const { created_by } = detailOf(email)
  return created_by === undefined ? null : { key_id: isId('key', created_by) ? created_by : null }
}

async function ownerOf(reader: Reader, { identity_id }: DueEmail): Promise<IdentityRow> {
  const row = await reader.get<IdentityRow>(sql`SELECT * FROM identities WHERE id = ${identity_id}`)
  return row!
}
